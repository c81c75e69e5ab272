// flags: -lm
// std::vector arguments that get longer: with room enough, the gradient of the old elements is where they are. The gradient in memory that is released would be lost: the program stops.
#include "check.h"
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

extern int enzyme_dup, enzyme_const;
template <typename Return, typename... T> Return __enzyme_autodiff(void *, T...);

static double append(std::vector<double> *v) {
  for (int i = 0; i < 5; i++)
    v->push_back((*v)[i] * (*v)[i]);
  return v->back();
}

static double work_on_copy(const std::vector<double> *given) {
  std::vector<double> v(*given);
  return append(&v);
}

int main() {
  std::vector<double> v{1.5}, dv{0};
  v.reserve(16);
  dv.assign(16, 0.0); // zeros also where there is only room
  dv.resize(1);
  __enzyme_autodiff<void>((void *)append, enzyme_dup, &v, &dv);
  CHECK_CLOSE(v.back(), pow(1.5, 32), 1e-12);
  CHECK_CLOSE(dv[0], 32 * pow(1.5, 31), 1e-12);

  std::vector<double> w{1.5}, dw{0};
  __enzyme_autodiff<void>((void *)work_on_copy, enzyme_dup, &w, &dw);
  CHECK_CLOSE(dw[0], 32 * pow(1.5, 31), 1e-12);

  int ends[2];
  CHECK(pipe(ends) == 0);
  pid_t child = fork();
  if (child == 0) {
    std::vector<double> fresh{0};
    dup2(ends[1], 2);
    __enzyme_autodiff<void>((void *)append, enzyme_dup, &w, &fresh);
    _exit(0);
  }
  char said[512] = "";
  CHECK(read(ends[0], said, sizeof said - 1) > 0);
  CHECK(strstr(said, "Ferrozyme: memory of an argument was freed, and a gradient that is not zero would be lost with it"));
  int status;
  waitpid(child, &status, 0);
  CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
  return 0;
}
