// The error of a start: which task it was, and why.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "base/error.h"

namespace muster::engine {

/// Of an error whose sentence names the task that could not be started.
struct CannotStart : base::ErrorDetail {
  CannotStart(std::string name, std::string why) : task(std::move(name)), reason(std::move(why)) {}
  std::string task;
  std::string reason;  ///< the sentence without the task
};

/// "cannot start worker-0: port 80 is taken". An error that names its task already stays as it is.
inline base::Error start_error(const std::string& task, base::Error error) {
  if (base::detail_of<CannotStart>(error) != nullptr) return error;
  error.detail = std::make_shared<const CannotStart>(task, error.what);
  error.what = "cannot start " + task + ": " + error.what;
  return error;
}

/// The error without its task, for a peer that names it itself.
inline base::Error bare_start_error(base::Error error) {
  if (const auto* const named = base::detail_of<CannotStart>(error)) {
    error.what = named->reason;
    error.detail.reset();
  }
  return error;
}

}  // namespace muster::engine
