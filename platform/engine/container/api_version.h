// Which version of the Engine API is spoken: the highest that both sides know.
//
// Pure.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace muster::engine {

inline constexpr const char* kOldestApi = "1.40";  ///< Docker 19.03
inline constexpr const char* kNewestApi = "1.51";  ///< Docker 28

/// `theirs`: the newest that the engine speaks, as its answer to a ping says. kUnavailable: it is
/// older than the oldest that is known here, or no version at all.
base::Result<std::string> choose_api_version(std::string_view theirs);

}  // namespace muster::engine
