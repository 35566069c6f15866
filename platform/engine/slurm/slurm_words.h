// Slurm's words for the states of jobs and nodes, and for the reasons why a job waits: their
// meaning in Muster, and as a sentence. Both clients get the same words.
//
// Pure; thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/slurm/slurm_client.h"

namespace muster::engine::slurm {

/// Upper case, as Slurm writes states; non-ASCII letters are unchanged.
std::string upper_case(std::string_view text);

/// `words`: one word, or several as Slurm joins them: "PENDING", "RUNNING+COMPLETING", "CANCELLED
/// by 1000". A completing job that Slurm may still requeue is kCompleting.
JobState job_state_of(std::string_view words);

/// Whether a node in this state gets jobs: "idle" and "MIXED" do, "IDLE*+DRAIN" does not.
bool takes_jobs(std::string_view node_state);

/// Whether Slurm can reach a node in this state: "DRAINED" yes, "IDLE*" and "DOWN" no.
bool answers(std::string_view node_state);

/// The reason of a wait as a sentence, and the user's remedy.
struct ReasonWords {
  std::string what;    ///< "its nodes are in use"; for an unknown reason, Slurm's word
  std::string advice;  ///< empty: none
  bool is_known = true;

  bool operator==(const ReasonWords&) const = default;
};
/// `reason`: "Resources", "QOSMaxGRESPerUser", "ReqNodeNotAvail, UnavailableNodes:n1"; may be
/// empty.
ReasonWords explain_reason(std::string_view reason);

}  // namespace muster::engine::slurm
