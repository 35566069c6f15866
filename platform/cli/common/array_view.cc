#include "cli/common/array_view.h"

#include "base/text.h"
#include "cli/common/format.h"
#include "cli/common/output.h"
#include "words/job_table.h"

namespace muster::cli {

namespace {

std::string array_members_words(const job::Array& array) {
  const job::ArraySpec& spec = array.spec.array;
  std::string text = std::to_string(array.counts.all()) + " (" + spec.indexes + ")";
  if (spec.max_running > 0) text += ", at most " + std::to_string(spec.max_running) + " run";
  if (spec.max_failures) {
    text += ", stopped after more than " + base::count_text(*spec.max_failures, "failure");
  }
  return text;
}

std::string array_phase(const job::Array& array) {
  std::string text(job::to_string(array.phase));
  if (array.too_many_failures) return text + " (more members failed than max_failures allows)";
  if (array.ended) return text;
  if (array.stop_requested) return text + " (being stopped)";
  return array.suspended ? text + " (suspended)" : text;
}

}  // namespace

std::string array_counts(const job::Array& array) {
  const job::MemberCounts& counts = array.counts;
  const auto parts = [](const std::vector<std::pair<int, const char*>>& all) {
    std::string text;
    for (const auto& [count, word] : all) {
      if (count == 0) continue;
      text += (text.empty() ? "" : ", ") + std::to_string(count) + " " + word;
    }
    return text;
  };
  const std::string ended = parts(
      {{counts.succeeded, "succeeded"}, {counts.failed, "failed"}, {counts.stopped, "stopped"}});
  const std::string open = parts(
      {{counts.starting + counts.running, counts.starting + counts.running == 1 ? "runs" : "run"},
       {counts.queued, counts.queued == 1 ? "waits" : "wait"}});
  std::string text = std::to_string(counts.ended()) + " of " + std::to_string(counts.all()) +
                     " done (" + std::to_string(array.percent) + "%)";
  if (!ended.empty()) text += ": " + ended;
  if (!open.empty()) text += "; " + open;
  return text;
}

std::string array_page(const job::Array& array, base::Time now) {
  std::string text = fields(
      {{"NAME", array.spec.name},
       {"KIND", "array of " + std::string(job::to_string(array.spec.kind)) + " jobs"},
       {"NEEDS", needs_words(array.spec)},
       {"MEMBERS", array_members_words(array)},
       {"PHASE", array_phase(array)},
       {"PROGRESS", array_counts(array)},
       {"PROJECT", array.spec.project},
       {"OWNER", array.owner},
       {"ID", array.id},
       {"SUBMITTED", moment_words(array.submitted) + " (" + age(array.submitted, now) + " ago)"},
       {"ENDED", array.ended ? moment_words(*array.ended) : ""}});
  if (array.failed.empty()) return text;
  Table table({{"MEMBER"}, {"PHASE"}, {"EXIT", true}, {"REASON"}});
  for (const job::MemberEnd& member : array.failed) {
    table.add({job::member_title(array.spec.name, member.index),
               std::string(job::to_string(member.phase)),
               member.exit_code ? std::to_string(*member.exit_code) : "-",
               member.job.empty() ? "its log is no longer kept" : member.reason});
  }
  const int more = array.counts.failed - static_cast<int>(array.failed.size());
  text += "\nFAILED MEMBERS\n" + table.to_string("  ");
  if (more > 0) text += "  and " + std::to_string(more) + " more\n";
  return text;
}

}  // namespace muster::cli
