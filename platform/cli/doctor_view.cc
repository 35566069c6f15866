#include "cli/doctor_view.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

#include "cli/table.h"
#include "cli/terminal.h"

namespace muster::cli {

using job::Diagnosis;
using job::Finding;
using Verdict = job::Finding::Verdict;

namespace {

constexpr size_t kVerdictWidth = 7;  // "lacks" and two blanks

const char* verdict_colour(Verdict verdict) {
  switch (verdict) {
    case Verdict::kFine:
      return "\x1b[32m";
    case Verdict::kNote:
      return "\x1b[2m";
    case Verdict::kLacks:
      return "\x1b[33m";
    case Verdict::kFails:
      return "\x1b[1;31m";
  }
  return "";
}

/// What stands before a finding: the colour repeats what the word says.
std::string word_of(Verdict verdict) {
  return verdict == Verdict::kFine ? "ok" : to_string(verdict);
}

std::string dressed(const std::string& text, const char* with, bool colour) {
  return colour ? with + text + kNoColour : text;
}

std::string padded(const std::string& text, size_t width) {
  const size_t shown = display_width(text);
  return text + std::string(shown < width ? width - shown : 0, ' ');
}

std::string page_of(const Diagnosis& diagnosis, bool is_chosen, bool colour) {
  const bool runs = can_run(diagnosis);
  std::string text = diagnosis.engine + (is_chosen ? " (chosen)" : "") + ": " +
                     dressed(runs ? "can run jobs" : "cannot run jobs",
                             verdict_colour(runs ? Verdict::kFine : Verdict::kFails), colour) +
                     "\n";
  size_t width = 0;
  for (const Finding& finding : diagnosis.findings) {
    width = std::max(width, display_width(finding.subject));
  }
  for (const Finding& finding : diagnosis.findings) {
    const std::string word = padded(word_of(finding.verdict), kVerdictWidth);
    text += "  " + dressed(word, verdict_colour(finding.verdict), colour) +
            padded(finding.subject, width + 2) + finding.text + "\n";
    if (finding.advice.empty()) continue;
    text += std::string(2 + kVerdictWidth + width + 2, ' ') + "-> " + finding.advice + "\n";
  }
  return text;
}

}  // namespace

std::string doctor_page(const std::vector<Diagnosis>& diagnoses, const std::string& chosen,
                        bool colour) {
  std::string text;
  for (const Diagnosis& diagnosis : diagnoses) {
    text += (text.empty() ? "" : "\n") + page_of(diagnosis, diagnosis.engine == chosen, colour);
  }
  return text;
}

std::string doctor_json(const std::vector<Diagnosis>& diagnoses, const std::string& chosen,
                        const std::string& version) {
  using nlohmann::ordered_json;
  ordered_json engines = ordered_json::array();
  for (const Diagnosis& diagnosis : diagnoses) {
    ordered_json findings = ordered_json::array();
    for (const Finding& finding : diagnosis.findings) {
      findings.push_back({{"subject", finding.subject},
                          {"verdict", to_string(finding.verdict)},
                          {"text", finding.text},
                          {"advice", finding.advice}});
    }
    engines.push_back({{"engine", diagnosis.engine},
                       {"can_run", can_run(diagnosis)},
                       {"findings", std::move(findings)}});
  }
  const ordered_json json{
      {"version", version}, {"chosen", chosen}, {"engines", std::move(engines)}};
  return json.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

bool is_well(const std::vector<Diagnosis>& diagnoses, const std::string& chosen) {
  return std::any_of(diagnoses.begin(), diagnoses.end(), [&](const Diagnosis& diagnosis) {
    return diagnosis.engine == chosen && can_run(diagnosis);
  });
}

}  // namespace muster::cli
