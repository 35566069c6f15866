// What a slurmrestd that does not do what it is asked means, as an Error.
//
// Pure; thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "engine/slurm/rest_json.h"

namespace muster::engine::slurm {

/// What has become of a request that was answered, but not done.
enum class RestFailure {
  kRefused,       ///< Slurm will not
  kNotReached,    ///< slurmrestd did not reach the controller: nothing was done
  kLost,          ///< it did, and did not hear what became of it
  kUnspecified,   ///< an error without a name: no controller, or one that does not take the token
  kUnauthorized,  ///< slurmrestd wants a token, or another
  kNotServed,     ///< it does not know the path: it is another slurmrestd than before
};

/// `status` is 400 and more, or there are faults.
RestFailure rest_failure_of(int status, const std::vector<RestFault>& faults);

/// Slurm's words for it: those of the first fault that has any. `status`: where none has.
std::string words_of(int status, const std::vector<RestFault>& faults);

/// Whether it says of a job that is to end that there is nothing more to end.
bool is_over_already(const std::vector<RestFault>& faults);

/// `doing`: what was asked ("Slurm's queue cannot be read"); `name`: of which slurmrestd. Of a job
/// that was not taken: `submission`, else null.
base::Error rest_error(RestFailure failure, const std::string& words, const std::string& doing,
                       const std::string& name, const Submission* submission = nullptr);

}  // namespace muster::engine::slurm
