// The result of checking an engine on a machine: what is present, what is missing, and how to
// install it.
//
// Plain values.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

namespace muster::job {

struct Finding {
  enum class Verdict {
    kFine,
    kNote,   ///< neither good nor bad: there are no GPUs
    kLacks,  ///< a feature that some jobs need does not work
    kFails,  ///< no job can run
  };
  std::string subject;  ///< "bubblewrap", "the controller"
  Verdict verdict = Verdict::kFine;
  std::string text;    ///< the result or the fault: "0.8.0", "is not installed"
  std::string advice;  ///< what to do; empty: nothing

  bool operator==(const Finding&) const = default;
};

struct Diagnosis {
  std::string engine;  ///< "process"
  std::vector<Finding> findings;

  bool operator==(const Diagnosis&) const = default;
};

inline bool can_run(const Diagnosis& diagnosis) {
  return std::none_of(
      diagnosis.findings.begin(), diagnosis.findings.end(),
      [](const Finding& finding) { return finding.verdict == Finding::Verdict::kFails; });
}

/// "fine", "note", "lacks", "fails".
constexpr const char* to_string(Finding::Verdict verdict) {
  switch (verdict) {
    case Finding::Verdict::kFine:
      return "fine";
    case Finding::Verdict::kNote:
      return "note";
    case Finding::Verdict::kLacks:
      return "lacks";
    case Finding::Verdict::kFails:
      return "fails";
  }
  return "";
}

}  // namespace muster::job
