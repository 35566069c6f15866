// Words that all engines use for programs in tasks.
//
// Pure.
#pragma once

#include <cstdint>
#include <string>

#include "base/error.h"
#include "engine/engine.h"

namespace muster::engine {

/// No program can be run in the task, and nobody can sit before it.
inline base::Error not_running(const std::string& task) {
  return {.code = base::ErrorCode::kConflict,
          .what = "task " + task + " does not run",
          .advice = "programs can be run in tasks that run"};
}

/// Said to whoever sits before a program and has read too slowly.
inline std::string left_out_text(uint64_t bytes) {
  return "\r\nmuster: " + std::to_string(bytes) +
         " bytes of output are left out here, for they came faster than they were taken; they are "
         "in the log\r\n";
}

/// What muster-helper is told to be; empty: it is none of its.
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
