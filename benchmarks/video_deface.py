"""Run by `video.py` in deface's own environment: the ellipses that deface 1.5 blurs in every frame of clips.

`python video_deface.py CLIP ...` reads each clip as deface's command does, with its network, threshold and
mask scale, and prints one line of JSON per clip: for every frame the list of left, top, right and bottom.
"""

import json
import sys

import imageio
import numpy as np
from deface.centerface import CenterFace
from deface.deface import scale_bb

THRESHOLD, MASK_SCALE = 0.2, 1.3

net = CenterFace(backend="opencv")
for path in sys.argv[1:]:
    frames = []
    for frame in imageio.get_reader(path).iter_data():
        found, _ = net(frame, threshold=THRESHOLD)
        boxes = [scale_bb(*row[:4].astype(int), MASK_SCALE) for row in found]
        high, wide = frame.shape[0] - 1, frame.shape[1] - 1
        frames.append([np.clip(box, 0, [wide, high, wide, high]).tolist() for box in boxes])
    print(json.dumps(frames), flush=True)
