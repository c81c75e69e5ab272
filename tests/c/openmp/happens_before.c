// libomp is not instrumented, so that ThreadSanitizer does not see which regions, barriers and locks order accesses of different threads. libomp says it through OMPT, the interface for tools;
// this is a tool that passes it on, as libarcher does, which Debian's packages do not have. Programs are linked with it by `FERROZYME_SANITIZE=thread`.
#include <omp-tools.h>
#include <stdlib.h>

void AnnotateHappensBefore(const char *file, int line, const volatile void *place);
void AnnotateHappensAfter(const char *file, int line, const volatile void *place);
void AnnotateIgnoreWritesBegin(const char *file, int line);
void AnnotateIgnoreWritesEnd(const char *file, int line);
void AnnotateIgnoreReadsBegin(const char *file, int line);
void AnnotateIgnoreReadsEnd(const char *file, int line);

static void before(const volatile void *place) { AnnotateHappensBefore(__FILE__, __LINE__, place); }
static void after(const volatile void *place) { AnnotateHappensAfter(__FILE__, __LINE__, place); }

// A parallel region: what comes before its threads begin, and two barriers in turn, since some threads may be at the next one while others leave the last.
typedef struct {
  char fork, barriers[2];
} Region;

// The part of a thread in a region.
typedef struct {
  Region *region;
  int barrier;
} Member;

static void on_parallel_begin(ompt_data_t *task, const ompt_frame_t *frame, ompt_data_t *parallel, unsigned wanted, int flags, const void *code) {
  Region *region = calloc(1, sizeof *region);
  parallel->ptr = region;
  before(&region->fork);
}

// Regions are not freed: a thread of the team may still look at its own.
static void on_parallel_end(ompt_data_t *parallel, ompt_data_t *task, int flags, const void *code) {
  Region *region = parallel->ptr;
  after(&region->barriers[0]);
  after(&region->barriers[1]);
}

static void on_implicit_task(ompt_scope_endpoint_t at, ompt_data_t *parallel, ompt_data_t *task, unsigned size, unsigned number, int flags) {
  if (at != ompt_scope_begin || (flags & ompt_task_initial) || !parallel || !parallel->ptr)
    return;
  Member *member = calloc(1, sizeof *member);
  member->region = parallel->ptr;
  task->ptr = member;
  after(&member->region->fork);
}

// Within barriers the runtime adds up reductions.
static void on_barrier(ompt_sync_region_t kind, ompt_scope_endpoint_t at, ompt_data_t *parallel, ompt_data_t *task, const void *code) {
  Member *member = task ? task->ptr : NULL;
  if (!member || kind == ompt_sync_region_taskwait || kind == ompt_sync_region_taskgroup)
    return;
  if (at == ompt_scope_begin) {
    before(&member->region->barriers[member->barrier]);
  } else {
    if (parallel)
      after(&member->region->barriers[member->barrier]);
    member->barrier ^= 1;
  }
}

static void on_reduction(ompt_sync_region_t kind, ompt_scope_endpoint_t at, ompt_data_t *parallel, ompt_data_t *task, const void *code) {
  if (at == ompt_scope_begin) {
    AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
    AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
  } else {
    AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
    AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
  }
}

static void on_acquired(ompt_mutex_t kind, ompt_wait_id_t lock, const void *code) { after((void *)lock); }
static void on_released(ompt_mutex_t kind, ompt_wait_id_t lock, const void *code) { before((void *)lock); }

static int start(ompt_function_lookup_t lookup, int device, ompt_data_t *data) {
  ompt_set_callback_t set = (ompt_set_callback_t)lookup("ompt_set_callback");
  set(ompt_callback_parallel_begin, (ompt_callback_t)on_parallel_begin);
  set(ompt_callback_parallel_end, (ompt_callback_t)on_parallel_end);
  set(ompt_callback_implicit_task, (ompt_callback_t)on_implicit_task);
  set(ompt_callback_sync_region, (ompt_callback_t)on_barrier);
  set(ompt_callback_reduction, (ompt_callback_t)on_reduction);
  set(ompt_callback_mutex_acquired, (ompt_callback_t)on_acquired);
  set(ompt_callback_mutex_released, (ompt_callback_t)on_released);
  return 1;
}

static void finish(ompt_data_t *data) {}

ompt_start_tool_result_t *ompt_start_tool(unsigned version, const char *runtime) {
  static ompt_start_tool_result_t tool = {start, finish, {0}};
  return &tool;
}
