#pragma OPENCL FP_CONTRACT OFF

/* Half precision, kept in a float. */
float round_f16(float x) {
  ushort bits;
  vstore_half_rte(x, 0, (__private half *)&bits);
  return vload_half(0, (const __private half *)&bits);
}

float round_bf16(float x) {
  const uint bits = as_uint(x);
  const uint rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) & 0xffff0000u;
  return isnan(x) ? x : as_float(rounded);
}

void atomic_add_f32(volatile __global uint *place, float term) {
  uint seen, old = *place;
  do {
    seen = old;
    old = atomic_cmpxchg(place, seen, as_uint(as_float(seen) + term));
  } while (old != seen);
}

