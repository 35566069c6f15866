// Slurm's own words for the states of jobs and nodes, and for why a job waits: what they mean here,
// and in a sentence. Both clients come with the same words.
//
// Pure; thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/slurm/slurm_client.h"

namespace muster::engine::slurm {

/// As Slurm writes states; letters beyond ASCII stay as they are.
std::string upper_case(std::string_view text);

/// Of one word or of several, as Slurm joins them: "PENDING", "RUNNING+COMPLETING", "CANCELLED by
/// 1000". A state in which a job may come to wait again (it completes, and Slurm does not say what
/// comes of it) is kCompleting.
JobState job_state_of(std::string_view words);

/// Whether a node in this state is given jobs: "idle", "MIXED", "IDLE*+DRAIN".
bool takes_jobs(std::string_view node_state);

/// Whether a node in this state can be reached, as far as Slurm knows: "DRAINED", not "IDLE*",
/// "DOWN".
bool answers(std::string_view node_state);

/// Why a job waits, as Slurm says it, in a sentence, and what can be done about it.
struct ReasonWords {
  std::string what;    ///< "its nodes are in use"; of a word that is not known, the word itself
  std::string advice;  ///< empty: none
  bool is_known = true;

  bool operator==(const ReasonWords&) const = default;
};
/// "Resources", "QOSMaxGRESPerUser", "ReqNodeNotAvail, UnavailableNodes:n1". Empty for none.
ReasonWords explain_reason(std::string_view reason);

}  // namespace muster::engine::slurm
