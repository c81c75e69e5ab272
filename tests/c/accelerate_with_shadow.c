// refused: error: '__enzyme_accelerate' takes the arguments of the function, without shadows [FZ0605]
extern void __enzyme_accelerate(void *, ...);
extern int enzyme_dup;

static void twice(double *x) { x[0] *= 2; }

int main(void) {
  double x[1] = {1}, dx[1] = {1};
  __enzyme_accelerate((void *)twice, enzyme_dup, x, dx); // here
  return 0;
}
