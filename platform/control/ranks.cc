// What is learnt of an MPI program while it runs: which MPI it is, and where its ranks are.
#include "control/controller.h"
#include "control/run.h"

namespace muster::control {

using job::Job;

std::vector<std::string> names_of_tasks(const Job& job) {
  std::vector<std::string> names;
  for (const job::Task& task : job.tasks) names.push_back(task.name);
  return names;
}

job::Failure failure_of(const Job& job, CensusFault fault) {
  return {.task = job::deciding_task(job).name,
          .cause = fault.cause,
          .advice = std::move(fault.advice),
          .last_lines = std::move(fault.evidence)};
}

/// The leader's mpirun was asked before its program began.
void Controller::learn_mpi(Entry& entry) {
  Job& job = entry.job;
  if (!job.launch || !job.launch->mpi.empty()) return;
  job.launch->mpi = parts_.engine.mpi_of(engine_gang(job), job::deciding_task(job).name);
  if (!job.launch->mpi.empty()) change(entry);
}

/// Many sign in at once: they are looked at together.
void Controller::ranks_changed(Entry& entry) {
  Run& run = *entry.run;
  if (entry.job.spec.kind != job::Kind::kMpi) return;
  if (std::exchange(run.judging, true)) return;
  soon([this, id = entry.job.id, attempt = entry.job.attempt] {
    Entry* const late = run_of(id, attempt);
    if (late == nullptr) return;
    late->run->judging = false;
    judge_ranks(*late);
  });
}

void Controller::judge_ranks(Entry& entry) {
  Job& job = entry.job;
  Run& run = *entry.run;
  if (run.ending || job.eviction) return;
  const auto ranks = parts_.engine.ranks(engine_gang(job), names_of_tasks(job));
  CensusVerdict verdict;
  if (auto hangs = hanging_rank(job, ranks)) {
    verdict.fault = std::move(hangs);
  } else if (!run.judged) {
    verdict = judge_at_start(job, ranks);
    run.judged = verdict.is_final;
  }
  if (!verdict.fault) return;
  if (!verdict.fault->is_certain) {
    note(job, verdict.fault->cause);
    return change(entry);
  }
  fail(entry, failure_of(job, *std::move(verdict.fault)));
  change(entry);
  end_gang_gently(entry);
}

}  // namespace muster::control
