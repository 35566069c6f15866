// Facts in tests: compared with the sentence that readers see, and printed as it.
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

}  // namespace muster::job
