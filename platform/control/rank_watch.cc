#include "control/rank_watch.h"

#include <utility>

#include "control/gang_tasks.h"

namespace muster::control {

using job::Job;

void RankWatch::learn_mpi() {
  Job& job = context_.job();
  if (!job.launch || !job.launch->mpi.empty()) return;
  const std::string& leader = job::deciding_task(job).name;
  job.launch->mpi = context_.services.engine.mpi_of(context_.gang(), leader);
  if (!job.launch->mpi.empty()) context_.change();
}

/// Many ranks report at the same time: they are judged together, in a later turn of the loop.
void RankWatch::ranks_changed() {
  if (context_.job().spec.kind != job::Kind::kMpi) return;
  if (std::exchange(judging_, true)) return;
  context_.soon([this] {
    judging_ = false;
    judge();
  });
}

void RankWatch::judge() {
  const Job& job = context_.job();
  if (is_ending_() || job.eviction) return;
  const auto ranks = context_.services.engine.ranks(context_.gang(), names_of_tasks(job));
  CensusVerdict verdict;
  if (auto hangs = hanging_rank(job, ranks)) {
    verdict.fault = std::move(hangs);
  } else if (!judged_) {
    verdict = judge_at_start(job, ranks);
    judged_ = verdict.is_final;
  }
  if (!verdict.fault) return;
  if (!verdict.fault->is_certain) {
    context_.note(verdict.fault->cause);
    return context_.change();
  }
  fail_(failure_of(job, *std::move(verdict.fault)));
}

std::optional<job::Failure> RankWatch::fault_at_end() const {
  const Job& job = context_.job();
  const auto ranks = context_.services.engine.ranks(context_.gang(), names_of_tasks(job));
  auto fault = judge_at_end(job, ranks);
  if (!fault) return std::nullopt;
  return failure_of(job, *std::move(fault));
}

}  // namespace muster::control
