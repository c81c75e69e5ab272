// refused: error: cannot differentiate a volatile access to active memory [FZ0503]
// A volatile pointer to active memory: what is read need not be what was written. (Volatile floats are differentiated like others.)
extern int enzyme_dup;
void __enzyme_autodiff(void *, ...);

double function(double *x) {
  double *volatile kept = x; // here
  return kept[0] * kept[0];
}

int main(void) {
  double x = 2, dx = 0;
  __enzyme_autodiff((void *)function, enzyme_dup, &x, &dx);
  return 0;
}
