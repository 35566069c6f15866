#include "engine/slurm/rest_faults.h"

#include <algorithm>
#include <array>

#include "engine/slurm/slurm_error.h"

namespace muster::engine::slurm {

using base::Error;
using base::ErrorCode;

namespace {

constexpr int kUnauthorizedStatus = 401;
constexpr int kNotFoundStatus = 404;

// Slurm's error numbers (slurm_errno.h), as they have been for many versions.
constexpr int kUnspecified = -1;
constexpr int kInvalidJob = 2017;
constexpr int kAlreadyDone = 2021;
/// The controller could not be connected to.
constexpr std::array kUnreachableNumbers{1001, 1800};
/// It took some of it or all, and did not answer, or not in time.
constexpr std::array kLostNumbers{1002, 1003, 1004, 1801, 1802, 1803, 5003, 5004};

template <size_t Count>
bool is_among(const std::array<int, Count>& numbers, int number) {
  return std::find(numbers.begin(), numbers.end(), number) != numbers.end();
}

bool says(const RestFault& fault, std::string_view words) {
  return fault.text.find(words) != std::string::npos;
}

}  // namespace

RestFailure rest_failure_of(int status, const std::vector<RestFault>& faults) {
  if (status == kUnauthorizedStatus) return RestFailure::kUnauthorized;
  if (status == kNotFoundStatus && faults.empty()) return RestFailure::kNotServed;
  const auto any = [&](auto holds) { return std::any_of(faults.begin(), faults.end(), holds); };
  // v0.0.36 writes 0 for the number, and what is meant behind it.
  if (any([](const RestFault& fault) {
        return is_among(kUnreachableNumbers, fault.number) || says(fault, "(connect failure)");
      })) {
    return RestFailure::kNotReached;
  }
  if (any([](const RestFault& fault) { return is_among(kLostNumbers, fault.number); })) {
    return RestFailure::kLost;
  }
  const bool is_named =
      any([](const RestFault& fault) { return fault.number > 0 || fault.number < kUnspecified; }) ||
      (!faults.empty() &&
       !any([](const RestFault& fault) { return fault.number == kUnspecified; }));
  return is_named ? RestFailure::kRefused : RestFailure::kUnspecified;
}

std::string words_of(int status, const std::vector<RestFault>& faults) {
  const auto found = std::find_if(faults.begin(), faults.end(),
                                  [](const RestFault& fault) { return !fault.text.empty(); });
  if (found != faults.end()) return found->text;
  if (!faults.empty()) return "error " + std::to_string(faults.front().number);
  return "it answers with status " + std::to_string(status);
}

bool is_over_already(const std::vector<RestFault>& faults) {
  return !faults.empty() && std::all_of(faults.begin(), faults.end(), [](const RestFault& fault) {
    return fault.number == kInvalidJob || fault.number == kAlreadyDone ||
           says(fault, "Invalid job id specified") ||
           says(fault, "Job/step already completing or completed");
  });
}

Error rest_error(RestFailure failure, const std::string& words, const std::string& doing,
                 const std::string& name, const Submission* submission) {
  const std::string by = " (" + name + ")";
  const bool is_submission = submission != nullptr;
  switch (failure) {
    case RestFailure::kUnauthorized:
      return {
          .code = ErrorCode::kRefused,
          .what = doing + ": " + name + " does not take the token that it is given, or wants one",
          .advice =
              "see that slurmrestd runs with SLURM_JWT set and Slurm with AuthAltTypes="
              "auth/jwt, and that the token (`scontrol token`) is that of the user it is "
              "asked as"};
    case RestFailure::kNotServed:
      return {.code = ErrorCode::kUnavailable,
              .what = doing + ": " + name + " does not serve any more what it did",
              .advice = "it will be asked anew what it serves"};
    case RestFailure::kUnspecified:
      if (is_submission) break;
      return {.code = ErrorCode::kUnavailable,
              .what = doing + ": Slurm's controller does not answer, " + name + " says: " + words,
              .advice = "see that slurmctld runs: scontrol ping"};
    case RestFailure::kNotReached:
      return {.code = ErrorCode::kUnavailable,
              .what = doing + ": " + words + by,
              .advice = "see that slurmctld runs: scontrol ping"};
    case RestFailure::kLost:
      if (is_submission) break;
      return {.code = ErrorCode::kUnavailable, .what = doing + ": " + words + by};
    case RestFailure::kRefused:
      return is_submission ? refusal_of(words, *submission) : failure_of(doing, words);
  }
  return {.code = ErrorCode::kTimeout,
          .what = "Slurm was asked for a job, and its answer was lost: " + words + by};
}

}  // namespace muster::engine::slurm
