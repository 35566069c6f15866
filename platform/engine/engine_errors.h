// Errors and texts that all engines share, so that they read the same whichever engine runs a task.
//
// Pure.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "base/error.h"
#include "engine/engine.h"

namespace muster::engine {

// --- starting tasks

/// Detail of an error whose sentence names the task that could not be started.
struct CannotStart : base::ErrorDetail {
  CannotStart(std::string name, std::string why) : task(std::move(name)), reason(std::move(why)) {}
  std::string task;
  std::string reason;  ///< the sentence without the task
};

/// "cannot start worker-0: port 80 is taken". An error that names its task already is not changed.
inline base::Error start_error(const std::string& task, base::Error error) {
  if (base::detail_of<CannotStart>(error) != nullptr) return error;
  error.detail = std::make_shared<const CannotStart>(task, error.what);
  error.what = "cannot start " + task + ": " + error.what;
  return error;
}

/// The error without its task, for a caller that names the task itself.
inline base::Error bare_start_error(base::Error error) {
  if (const auto* const named = base::detail_of<CannotStart>(error)) {
    error.what = named->reason;
    error.detail.reset();
  }
  return error;
}

// --- changing files of running tasks

inline base::Error change_error(const std::string& task, base::Error error) {
  error.what = "cannot change the files of " + task + ": " + error.what;
  return error;
}

inline base::Error not_started_yet() {
  return {.code = base::ErrorCode::kConflict, .what = "its start is not done yet"};
}

// --- programs in tasks

/// The task is not running, so no program can be run in it or attached to.
inline base::Error not_running(const std::string& task) {
  return {.code = base::ErrorCode::kConflict,
          .what = "task " + task + " does not run",
          .advice = "programs can be run in tasks that run"};
}

/// Printed to a client that is attached to a program and has read too slowly.
inline std::string left_out_text(uint64_t bytes) {
  return "\r\nmuster: " + std::to_string(bytes) +
         " bytes of output are left out here, because they were read too slowly; they are in the "
         "log\r\n";
}

/// The argument that selects a helper in muster-helper; empty for kNone.
inline std::string word_of(Helper helper) {
  switch (helper) {
    case Helper::kPack:
      return "pack";
    case Helper::kUnpack:
      return "unpack";
    case Helper::kConnect:
      return "connect";
    case Helper::kNone:
      break;
  }
  return "";
}

}  // namespace muster::engine
