#include "server/job_watch.h"

#include <utility>

#include "api/event_wire.h"
#include "api/routes.h"
#include "api/wire.h"
#include "http/server_sent_events.h"

namespace muster::server {

using control::ChangeFeed;
using control::FeedPosition;
using job::Job;

namespace {

constexpr size_t kPieceBytes = 128 << 10;
constexpr size_t kJobChangesAtOnce = 100;

/// With how far its program is, but where it has ended: nothing is read for that.
std::string json_of(const Sight& sight, const Job& job) {
  if (!job::is_final(job.phase)) return api::job_to_json(sight.shown(job));
  return sight.sees_all() ? api::job_to_json(job) : api::job_to_json(sight.redacted(job));
}

}  // namespace

JobWatch::JobWatch(StreamLife life, control::Controller& controller, access::Identity who,
                   WatchFilter filter, std::optional<FeedPosition> from)
    : EventStream(std::move(life)),
      controller_(controller),
      who_(std::move(who)),
      filter_(std::move(filter)),
      at_(from.value_or(controller.feed().now())),
      listing_(!from),
      feed_watch_(controller.feed().watch([this] { wake(); })) {}

std::optional<http::BodyPiece> JobWatch::next() {
  std::string text;
  while (text.empty()) {
    if (listing_) {
      list_some(text);
    } else if (!follow_some(text)) {
      return std::nullopt;
    }
  }
  return http::BodyPiece(std::move(text));
}

// What changes while they are listed comes afterwards: the feed is followed from where it was when
// the listing began.
void JobWatch::list_some(std::string& text) {
  const Sight sight(controller_, who_);
  bool all = true;
  controller_.jobs().each_job(false, listed_, [&](const Job& job) {
    listed_ = job.submitted;
    if (filter_.takes(sight, job)) append_job(text, sight, job, "");
    all = text.size() < kPieceBytes;
    return all;
  });
  if (!all) return;
  listing_ = false;
  http::append_event(text, api::kReadyEvent, "{}", to_string(at_));
}

/// False: nothing has changed.
bool JobWatch::follow_some(std::string& text) {
  const auto changes = controller_.feed().after(at_, kJobChangesAtOnce);
  if (!changes) {
    http::append_event(text, api::kResetEvent, "{}");
    at_ = controller_.feed().now();
    listing_ = true;
    listed_.reset();
    return true;
  }
  if (changes->empty()) return false;
  const Sight sight(controller_, who_);
  for (const ChangeFeed::Change& change : *changes) {
    at_.number = change.number;
    append_change(text, sight, change);
    if (text.size() >= kPieceBytes) break;
  }
  return true;
}

void JobWatch::append_job(std::string& text, const Sight& sight, const Job& job,
                          const std::string& id) const {
  http::append_event(text, api::kJobEvent, json_of(sight, job), id);
}

void JobWatch::append_change(std::string& text, const Sight& sight,
                             const ChangeFeed::Change& change) const {
  const std::string id = to_string(at_);
  if (change.removed) {
    const bool shown =
        filter_.takes(change.project, change.name) && sight.sees_project(change.project);
    if (!shown) return;
    return http::append_event(
        text, api::kRemovedEvent,
        api::removed_job_to_json(
            {.id = change.job, .name = change.name, .project = change.project}),
        id);
  }
  // One that is gone by now is told as removed by a later change.
  const Job* const job = controller_.jobs().with_id(change.job);
  if (job != nullptr && filter_.takes(sight, *job)) append_job(text, sight, *job, id);
}

}  // namespace muster::server
