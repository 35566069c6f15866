// One sweep in the memory of the server, for the sources of Sweeps.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "control/sweeps.h"
#include "store/store.h"
#include "sweep/search.h"
#include "sweep/sweep.h"

namespace muster::control {

// The two objects of a sweep in the store: its record, which never changes, and its progress.
inline constexpr const char* kSweepKind = "sweep";
inline constexpr const char* kSweepProgressKind = "sweep-progress";
store::Object sweep_progress_object(const sweep::SweepRecord& record,
                                    const sweep::SweepProgress& progress);

/// Whether a fact about the job of the trial may still change the trial.
inline bool may_change(const sweep::Trial& trial) {
  return trial.phase == sweep::TrialPhase::kActive || trial.phase == sweep::TrialPhase::kPaused;
}

struct Sweeps::Entry {
  explicit Entry(sweep::SweepRecord stored, sweep::SweepProgress progress = {})
      : record(std::move(stored)),
        ended(progress.ended),
        is_end_reported(ended.has_value()),
        search(record.spec, std::move(progress.search)),
        settled(progress.removing),
        removing(progress.removing) {}

  struct TrialJob {
    std::string id;
    bool asking = false;  ///< its metrics are being read
    int read_of = 0;      ///< the last attempt whose metrics were read after it had ended
  };

  sweep::SweepProgress progress() const {
    return {.search = search.state(), .ended = ended, .removing = removing};
  }
  sweep::SweepSummary summary() const { return sweep::summary_of(record, search.state(), ended); }
  /// nullptr: the search has no such trial.
  const sweep::Trial* trial(int number) const {
    const std::vector<sweep::Trial>& trials = search.state().trials;
    const bool is_known = number >= 1 && static_cast<size_t>(number) <= trials.size();
    return is_known ? &trials[static_cast<size_t>(number - 1)] : nullptr;
  }

  const sweep::SweepRecord record;
  std::optional<base::Time> ended;
  bool is_end_reported = false;  ///< its end was stored, and handed to notifications
  sweep::Search search;
  std::map<int, TrialJob> jobs;  ///< by trial; a job that was removed may still be here
  bool unsaved = false;          ///< the state has changed since it was stored
  bool settled = false;          ///< ended, and so have all jobs
  bool removing = false;         ///< is being deleted
};

}  // namespace muster::control
