#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "api/load.h"
#include "store/postgres_store.h"
#include "store/sqlite_store.h"

namespace bench {

namespace {

using muster::job::Job;
using muster::job::Phase;
using What = muster::job::Notice::What;

/// An ended job of two workers, which is typical of the jobs in a server's store.
Job ended_job(size_t number) {
  const muster::base::Time start{std::chrono::seconds(1'700'000'000) +
                                 std::chrono::seconds(number)};
  Job job{.id = "filled" + std::to_string(number),
          .spec = {.name = "filled-" + std::to_string(number),
                   .kind = muster::job::Kind::kMpi,
                   .command = {"mpirun", "-np", "2", "python3", "train.py", "--epochs", "10"},
                   .workers = 2,
                   .resources = {.gpus = 1, .cpu_milli = 1000},
                   .folder = "/home/ada"},
          .owner = "ada",
          .phase = number % 10 == 0 ? Phase::kFailed : Phase::kSucceeded,
          .reason = muster::job::Notice{What::kDone},
          .attempt = 1,
          .submitted = start,
          .started = start + std::chrono::seconds(1),
          .ended = start + std::chrono::seconds(60),
          .exit_code = number % 10 == 0 ? 1 : 0};
  for (const char* name : {"HOME", "LANG", "PATH", "PYTHONPATH", "USER"}) {
    job.spec.environment[name] = "/usr/local/bin:/usr/bin:/bin";
  }
  job.tasks = muster::job::tasks_of(job.spec);
  for (auto& task : job.tasks) {
    task.node = "n1";
    task.phase = muster::job::TaskPhase::kEnded;
    task.exit = muster::job::ExitStatus{};
    task.started = job.started;
    task.ended = job.ended;
  }
  int step = 0;
  for (const muster::job::Fact& what :
       {muster::job::Fact(muster::job::Notice{What::kSubmitted}),
        muster::job::Fact(muster::job::Placed{.nodes = {"n1"}, .attempt = 1}),
        muster::job::Fact(muster::job::EveryWorkerAnswers{}),
        muster::job::Fact(muster::job::Notice{What::kRunning}),
        muster::job::Fact(muster::job::PhaseReached{.phase = Phase::kSucceeded})}) {
    job.events.push_back({.time = start + std::chrono::milliseconds(++step), .what = what});
  }
  return job;
}

muster::base::Result<std::unique_ptr<muster::store::Store>> open_store(const std::string& where) {
  if (!muster::store::is_postgres_url(where)) {
    MUSTER_TRY(auto file, muster::store::SqliteStore::open(where));
    return std::unique_ptr<muster::store::Store>(std::move(file));
  }
  MUSTER_TRY(auto server, muster::store::PostgresStore::open(where, "/nowhere"));
  MUSTER_CHECK(server->try_to_lead("bench"));  // only the leader may write
  return std::unique_ptr<muster::store::Store>(std::move(server));
}

}  // namespace

int fill(const std::string& database, size_t count) {
  constexpr size_t kBatch = 1000;
  auto store = open_store(database);
  if (!store) {
    std::fprintf(stderr, "bench_api: %s\n", store.error().to_string().c_str());
    return 1;
  }
  for (size_t first = 0; first < count; first += kBatch) {
    std::vector<Job> jobs;
    for (size_t i = first; i < std::min(count, first + kBatch); ++i) jobs.push_back(ended_job(i));
    muster::store::Batch batch;
    for (const Job& job : jobs) batch.new_jobs.push_back({.job = &job, .idempotency_key = ""});
    if (const auto done = (*store)->commit(batch); !done) {
      std::fprintf(stderr, "bench_api: %s\n", done.error().to_string().c_str());
      return 1;
    }
  }
  return 0;
}

}  // namespace bench
