// refused: error: active values go through 'buffer', which has neither a body nor a derivative rule [FZ0401]
// A function that is not seen gives an address twice: perhaps of the same memory.
double __enzyme_autodiff(void *, double);

double *buffer(void);

double function(double x) {
  *buffer() = x * x; // here
  return *buffer();
}

int main(void) { return __enzyme_autodiff((void *)function, 3.0) != 6; }
