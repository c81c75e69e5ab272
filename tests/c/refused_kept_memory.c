// refused: error: active values go through 'keep', which has neither a body nor a derivative rule [FZ0401]
// A function that is not seen keeps an address, and another one gives it back.
double __enzyme_autodiff(void *, double);

void keep(double *);
double *kept(void);

double function(double x) {
  double buffer[2];
  keep(buffer); // here
  buffer[0] = x * x;
  return *kept();
}

int main(void) { return __enzyme_autodiff((void *)function, 3.0) != 6; }
