// A CronJob of Kubernetes: a schedule of Muster, with the job of its runs.
//
// Where both products decide for themselves, the file's product counts: without a concurrencyPolicy,
// runs overlap, and a missed run starts however late it is.
#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include "dialects/kubernetes/kinds.h"

namespace muster::dialects::kubernetes {

namespace {

using Overlap = job::ScheduleSpec::Overlap;
using CatchUp = job::ScheduleSpec::CatchUp;

/// Muster starts a run within a minute of its time, and calls it missed after that.
constexpr int64_t kSecondsOnTime = 60;

/// In Kubernetes, "?" is another word for "*".
std::string cron_of(const Node& node) {
  std::string cron = node.text().value_or("");
  std::replace(cron.begin(), cron.end(), '?', '*');
  if (cron.starts_with("TZ=") || cron.starts_with("CRON_TZ=")) {
    node.fault("contains a time zone; give it as timeZone");
  }
  if (cron.starts_with("@every")) {
    node.fault("'@every' is not supported; a run starts at times of day, as in '*/10 * * * *'");
  }
  if (cron == "@annually") return "@yearly";
  if (cron == "@midnight") return "@daily";
  return cron;
}

Overlap overlap_of(const Node& node) {
  const auto word = node.word({"Allow", "Forbid", "Replace"});
  if (word == "Forbid") return Overlap::kForbid;
  return word == "Replace" ? Overlap::kReplace : Overlap::kAllow;
}

void read_deadline(const Node& node, job::ScheduleSpec& schedule) {
  const auto seconds = node.integer(0, kMostSeconds);
  if (!seconds) return;
  if (*seconds <= kSecondsOnTime) {
    schedule.catch_up = CatchUp::kNone;
  } else {
    schedule.catch_up_within = std::chrono::seconds(*seconds);
  }
}

/// The labels and annotations of the jobs.
void read_template_metadata(Map& job, const TranslationOptions& options, Metadata& metadata) {
  if (const auto node = job.take("metadata"); !node || node->is_default()) return;
  TranslationOptions named = options;
  named.name = metadata.name;
  const Metadata own = read_metadata(job, named);
  for (const auto& [key, value] : own.labels) metadata.labels[key] = value;
  for (const auto& [key, value] : own.annotations) metadata.annotations[key] = value;
  if (!own.labels.empty()) metadata.labels_place = own.labels_place;
  if (!own.annotations.empty()) metadata.annotations_place = own.annotations_place;
  if (!own.queue.empty()) {
    metadata.queue = own.queue;
    metadata.queue_place = own.queue_place;
  }
  if (!own.priority_class.empty()) {
    metadata.priority_class = own.priority_class;
    metadata.priority_place = own.priority_place;
  }
}

}  // namespace

Draft read_cron_job(Map& document, const Surroundings& surroundings,
                    const TranslationOptions& options) {
  Metadata metadata = read_metadata(document, options);
  metadata.file_name.clear();  // the pods have the name of a run
  job::ScheduleSpec schedule{.name = metadata.name, .overlap = Overlap::kAllow};
  const auto spec_node = document.require("spec");
  if (!spec_node) return begin_draft(metadata, options, document.node());
  Map spec(*spec_node);
  if (const auto cron = spec.require("schedule")) schedule.cron = cron_of(*cron);
  if (const auto zone = spec.take("timeZone")) schedule.timezone = zone->text().value_or("UTC");
  if (const auto policy = spec.take("concurrencyPolicy")) schedule.overlap = overlap_of(*policy);
  if (const auto deadline = spec.take("startingDeadlineSeconds"))
    read_deadline(*deadline, schedule);
  schedule.held = spec.flag("suspend").value_or(false);
  for (const char* const limit : {"successfulJobsHistoryLimit", "failedJobsHistoryLimit"}) {
    spec.warn(limit,
              "has no effect: ttlSecondsAfterFinished or the server's rules say how long jobs are "
              "kept");
  }
  const auto job_node = spec.require("jobTemplate");
  spec.end();
  if (!job_node) return begin_draft(metadata, options, document.node());
  Map job(*job_node);
  read_template_metadata(job, options, metadata);
  Draft draft = begin_draft(metadata, options, document.node());
  if (const auto job_spec = job.require("spec")) {
    read_batch_job_spec(*job_spec, metadata, surroundings, options, draft);
  }
  job.end();
  draft.schedule = std::move(schedule);
  return draft;
}

}  // namespace muster::dialects::kubernetes
