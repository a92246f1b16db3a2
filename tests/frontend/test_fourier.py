"""The Fourier transform that onnxruntime does not do as ONNX says: from half a spectrum back to a real signal."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest

from onnx2caffe.frontend import from_proto
from tests.frontend.build import parsed, run


@pytest.mark.parametrize(("bins", "length"), [(5, None), (5, 8), (5, 9), (5, 12), (5, 5)])
def test_real_signal_of_half_a_spectrum(bins: int, length: int | None) -> None:
    given = "" if length is None else f"n = Constant <value_int = {length}> ()"
    body = f"{given} y = DFT <inverse = 1, onesided = 1> (x{', n' if length else ''})"
    loaded = from_proto(parsed(f"g (float[3, {bins}, 2] x) => (float y) {{ {body} }}", opset=20))
    x = np.random.default_rng(0).standard_normal((3, bins, 2)).astype(np.float32)
    (found,) = run(ir.to_proto(loaded.model), {"x": x})
    wanted = np.fft.irfft(x[..., 0] + 1j * x[..., 1], length)
    assert found.shape == (*wanted.shape, 1)
    assert np.allclose(found[..., 0], wanted, atol=1e-6)
