# docker build -t greylag . && docker run --rm -v "$PWD:/work" greylag search --index index --topics topics.tsv --out bm25.run
FROM python:3.12-slim
COPY . /tmp/greylag
RUN pip install --no-cache-dir '/tmp/greylag[java]' \
 && pip install --no-cache-dir --no-deps 'pyserini>=1.6,<3' \
 && rm -r /tmp/greylag \
 && greylag compile
WORKDIR /work
ENTRYPOINT ["greylag"]
