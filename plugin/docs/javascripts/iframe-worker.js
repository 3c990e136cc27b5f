// The site's search runs in a worker, which browsers refuse to pages that are opened from files: there, a frame runs it.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.waiting = [];
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      const inside = this.frame.contentWindow;
      inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      const script = inside.document.createElement("script");
      script.src = url;
      script.onload = () => {
        this.started = true;
        this.waiting.splice(0).forEach((data) => this.postMessage(data));
      };
      inside.document.body.append(script);
    }
    postMessage(data) {
      if (this.started) this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data }));
      else this.waiting.push(data);
    }
    terminate() {
      this.frame.remove();
    }
  };
}
