// flags: -lm
// Structs within structs, pointers to structs within structs, arrays of structs; memory from callees.
#include "check.h"

extern int enzyme_dup, enzyme_const;
double __enzyme_autodiff(void *, ...);

struct Layer {
  int rows, columns;
  double *weights;
  double *bias;
};
struct Network {
  struct Layer layers[2];
  double scale;
  char name[16];
};

static double *apply(const struct Layer *layer, const double *x) {
  double *y = malloc(layer->rows * sizeof *y);
  for (int i = 0; i < layer->rows; i++) {
    double sum = layer->bias[i];
    for (int j = 0; j < layer->columns; j++)
      sum += layer->weights[i * layer->columns + j] * x[j];
    y[i] = tanh(sum);
  }
  return y;
}

double loss(const struct Network *network, const double *x) {
  double *hidden = apply(&network->layers[0], x);
  double *out = apply(&network->layers[1], hidden);
  double sum = 0;
  for (int i = 0; i < network->layers[1].rows; i++)
    sum += out[i] * out[i];
  free(hidden);
  free(out);
  return network->scale * sum;
}

static struct Layer make(int rows, int columns, double start) {
  struct Layer l = {rows, columns, calloc(rows * columns, sizeof(double)), calloc(rows, sizeof(double))};
  for (int i = 0; i < rows * columns; i++)
    l.weights[i] = start * sin(i + 1);
  for (int i = 0; i < rows; i++)
    l.bias[i] = start * 0.1 * i;
  return l;
}

int main(void) {
  struct Network n = {{make(3, 2, 1), make(2, 3, 1)}, 2.0, "net"}, d = {{make(3, 2, 0), make(2, 3, 0)}, 0, ""};
  double x[2] = {0.5, -0.25}, h = 1e-6;
  __enzyme_autodiff((void *)loss, enzyme_dup, &n, &d, enzyme_const, x);
  CHECK_CLOSE(d.scale, loss(&n, x) / 2, 1e-12);
  for (int l = 0; l < 2; l++)
    for (int i = 0; i < 6; i++) {
      double *w = &n.layers[l].weights[i], kept = *w;
      *w = kept + h;
      double up = loss(&n, x);
      *w = kept - h;
      double down = loss(&n, x);
      *w = kept;
      CHECK_CLOSE(d.layers[l].weights[i], (up - down) / (2 * h), 1e-8);
    }
  return 0;
}
