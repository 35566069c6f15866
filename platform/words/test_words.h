// Facts in tests: compared by the sentence that readers see, and printed as it.
#pragma once

#include <ostream>
#include <string_view>

#include "words/sentence.h"

namespace muster::job {

inline bool operator==(const Reason& reason, std::string_view text) {
  return words::sentence(reason) == text;
}

inline std::ostream& operator<<(std::ostream& out, const Reason& reason) {
  return out << words::sentence(reason);
}

inline bool operator==(const FailureCause& cause, std::string_view text) {
  return words::sentence(cause) == text;
}

inline std::ostream& operator<<(std::ostream& out, const FailureCause& cause) {
  return out << words::sentence(cause);
}

inline bool operator==(const RanksAstray& astray, std::string_view text) {
  return FailureCause(astray) == text;
}

inline std::ostream& operator<<(std::ostream& out, const RanksAstray& astray) {
  return out << FailureCause(astray);
}

}  // namespace muster::job
