// refused: error: '__enzyme_differentiate' is not supported [FZ0613]
double __enzyme_differentiate(void *, ...);

double square(double x) { return x * x; }

int main(void) { return (int)__enzyme_differentiate((void *)square, 3.0); } // here
