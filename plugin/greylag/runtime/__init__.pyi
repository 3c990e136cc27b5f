from .archives import read_arrays as read_arrays
from .compilation import compiled as compiled
from .files import read_json_lines as read_json_lines
from .parallel import parallel_map as parallel_map
