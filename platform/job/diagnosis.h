// What was found out about an engine on a machine: what is there, what is missing, and how to get
// it.
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
    kLacks,  ///< something that some jobs want does not work
    kFails,  ///< without it no job runs
  };
  std::string subject;  ///< "bubblewrap", "the controller"
  Verdict verdict = Verdict::kFine;
  std::string text;    ///< what was found, or what is wrong: "0.8.0", "is not installed"
  std::string advice;  ///< what to do about it; empty: nothing

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
