// Measures how many jobs per second a store inserts, changes, loads and deletes, by the size of a
// batch. Each commit is on disk before the next begins. A folder selects SQLite in it; a URL
// (postgres://...) selects an empty schema of PostgreSQL.
//
//   bench_store FOLDER|URL [JOBS [JOBS_A_COMMIT]]
#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "store/postgres_store.h"
#include "store/records.h"
#include "store/sqlite_store.h"

namespace {

using muster::job::Job;
using muster::store::Batch;
using muster::store::Store;
using Clock = std::chrono::steady_clock;

/// A small job, as most jobs are: a short command, a few variables, one task, a few events.
Job small_job(size_t number) {
  const muster::base::Time now(std::chrono::nanoseconds(1'700'000'000'123'456'789));
  Job job{
      .id = "job" + std::to_string(number * 7919) + "x",
      .spec = {.name = "small-" + std::to_string(number),
               .command = {"python3", "train.py", "--epochs", "10"},
               .resources = {.gpus = 1, .cpu_milli = 1000},
               .folder = "/home/ada"},
      .reason = muster::job::NoRoom{.tasks = 1, .claim = {.gpus = 1}, .nodes = 2},
      .submitted = now,
      .events = {{.time = now, .what = muster::job::Notice{muster::job::Notice::What::kSubmitted}},
                 {.time = now, .what = muster::job::Placed{.nodes = {"n1"}}}}};
  for (const char* name : {"HOME", "LANG", "PATH", "PYTHONPATH", "USER"}) {
    job.spec.environment[name] = "/usr/local/bin:/usr/bin";
  }
  job.tasks = muster::job::tasks_of(job.spec);
  return job;
}

void report(const char* what, Clock::time_point start, size_t jobs, size_t commits) {
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  std::printf("%-8s %8.0f jobs/s", what, static_cast<double>(jobs) / seconds);
  if (commits > 0) {
    std::printf("  %6.2f ms a commit", seconds * 1000 / static_cast<double>(commits));
  }
  std::printf("\n");
}

/// Commits all jobs in batches; `fill` adds the change of each job.
template <class Fill>
void commit_all(Store& store, std::vector<Job>& jobs, size_t size, const char* what, Fill fill) {
  const auto start = Clock::now();
  size_t commits = 0;
  for (size_t first = 0; first < jobs.size(); first += size, ++commits) {
    Batch batch;
    for (size_t i = first; i < std::min(jobs.size(), first + size); ++i) fill(batch, jobs[i]);
    if (const auto done = store.commit(batch); !done) {
      std::fprintf(stderr, "bench_store: %s\n", done.error().what.c_str());
      std::exit(1);
    }
  }
  report(what, start, jobs.size(), commits);
}

void measure(Store& store, std::vector<Job>& jobs, size_t size) {
  commit_all(store, jobs, size, "insert", [](Batch& batch, Job& job) {
    batch.new_jobs.push_back({.job = &job, .idempotency_key = job.id + "-key"});
  });
  for (int round = 0; round < 3; ++round) {
    commit_all(store, jobs, size, "update", [](Batch& batch, Job& job) {
      ++job.attempt;
      batch.changed_jobs.push_back(&job);
    });
  }
  const auto start = Clock::now();
  const auto contents = store.load();
  if (!contents || contents->jobs != jobs) std::exit(1);
  report("load", start, jobs.size(), 0);
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  std::printf("at most  %8ld MiB, with all jobs twice in memory\n", usage.ru_maxrss / 1024);
  commit_all(store, jobs, size, "remove",
             [](Batch& batch, Job& job) { batch.removed_jobs.push_back(job.id); });
}

muster::base::Result<std::unique_ptr<Store>> open_empty(const std::string& place) {
  if (muster::store::is_postgres_url(place)) {
    MUSTER_TRY(auto store, muster::store::PostgresStore::open(place, "."));
    MUSTER_TRY(const bool leads, store->try_to_lead("bench"));
    if (!leads) std::fprintf(stderr, "bench_store: another server is the leader there\n");
    return std::unique_ptr<Store>(std::move(store));
  }
  const std::filesystem::path file = std::filesystem::path(place) / "bench.db";
  for (const char* suffix : {"", "-wal", "-shm"}) std::filesystem::remove(file.string() + suffix);
  MUSTER_TRY(auto store, muster::store::SqliteStore::open(file));
  return std::unique_ptr<Store>(std::move(store));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: bench_store FOLDER|URL [JOBS [JOBS_A_COMMIT]]\n");
    return 2;
  }
  const size_t count = argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 10'000;
  const size_t size = argc > 3 ? std::strtoul(argv[3], nullptr, 10) : 100;
  if (count == 0 || size == 0) return 2;
  std::vector<Job> jobs;
  for (size_t i = 0; i < count; ++i) jobs.push_back(small_job(i));

  auto store = open_empty(argv[1]);
  if (!store) {
    std::fprintf(stderr, "bench_store: %s\n", store.error().to_string().c_str());
    return 1;
  }
  std::printf("%zu jobs of %zu bytes, %zu a commit\n", count,
              muster::store::to_document(jobs.front()).size(), size);
  measure(**store, jobs, size);
  return 0;
}
