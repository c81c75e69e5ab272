#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable
void atomic_add_f64(volatile __global ulong *place, double term) {
  ulong seen, old = *place;
  do {
    seen = old;
    old = atom_cmpxchg(place, seen, as_ulong(as_double(seen) + term));
  } while (old != seen);
}

