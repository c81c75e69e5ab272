// flags: -lm -D_FORTIFY_SOURCE=2
// Bytes that come from outside: a message that is longer than its place, a pipe, and the checked forms of the C library.
#include "check.h"
#include <sys/socket.h>
#include <unistd.h>

double __enzyme_autodiff(void *, ...);

static int ends[2];

struct Place {
  double before, number, behind;
};

// The result of recv is the length of the whole message, of which eight bytes are there.
double received(double x) {
  struct Place place = {x, x * x, x * x * x};
  long length = recv(ends[0], &place.number, sizeof place.number, MSG_TRUNC);
  return length == 24 ? place.before * place.number + place.behind : 0;
}

double from_pipe(double x) {
  int pipes[2];
  double given = 7, y = x * x;
  if (pipe(pipes) != 0 || write(pipes[1], &given, sizeof given) != sizeof given)
    return 0;
  long found = read(pipes[0], &y, sizeof y);
  close(pipes[0]);
  close(pipes[1]);
  return found == sizeof y ? y * x : 0;
}

double from_file(double x) {
  FILE *file = tmpfile();
  double given[2] = {3, 5}, y[3] = {x, x, x};
  fwrite(given, sizeof *given, 2, file);
  rewind(file);
  size_t found = fread(y, sizeof *y, (size_t)(x * 3), file);
  fclose(file);
  return found == 2 ? y[0] * x + y[1] * x * x + y[2] * x * x * x : 0;
}

int main(void) {
  double message[3] = {11, 12, 13};
  CHECK(socketpair(AF_UNIX, SOCK_DGRAM, 0, ends) == 0);
  CHECK(send(ends[1], message, sizeof message, 0) == sizeof message);
  CHECK_CLOSE(__enzyme_autodiff((void *)received, 2.0), 11 + 12.0, 1e-12);
  CHECK_CLOSE(__enzyme_autodiff((void *)from_pipe, 2.0), 7.0, 1e-12);
  CHECK_CLOSE(__enzyme_autodiff((void *)from_file, 1.0), 3 + 10 + 4.0, 1e-12);
  return 0;
}
