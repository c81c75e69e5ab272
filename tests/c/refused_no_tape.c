// refused: error: after the arguments of 'norm', the call must pass the seed of its result and the tape [FZ0612]
// The tape is forgotten: what stands in its place is the seed.
extern int enzyme_dup, enzyme_const;
void __enzyme_reverse(void *, ...);

double norm(double *x, int n) {
  double sum = 0;
  for (int i = 0; i < n; i++)
    sum += x[i] * x[i];
  return sum;
}

int main(void) {
  double x[2] = {1, 2}, gradient[2] = {0, 0};
  __enzyme_reverse((void *)norm, enzyme_dup, x, gradient, enzyme_const, 2, 1.0); // here
  return gradient[0] > 0;
}
