#include "job/notification.h"

#include <algorithm>
#include <array>

#include "record/field.h"

namespace muster::job {

namespace {

/// A test delivery ("ping") can neither be subscribed to nor stored, so it appears in no document.
constexpr std::array<record::Named<Happening>, 5> kHappeningNames{
    {{Happening::kStarted, "started"},
     {Happening::kRequeued, "requeued"},
     {Happening::kSucceeded, "succeeded"},
     {Happening::kFailed, "failed"},
     {Happening::kStopped, "stopped"}}};

}  // namespace

record::Words<Happening> words_of(const Happening*) {
  return {.schema = "Happening",
          .values = kHappeningNames,
          .help = "`requeued`: the job ran, and waits again."};
}

std::string_view to_string(Happening happening) {
  return happening == Happening::kPing ? "ping" : record::word_for(happening);
}

std::optional<Happening> happening_of(std::string_view name) {
  return record::meant_by<Happening>(name);
}

const std::vector<Happening>& all_happenings() {
  static const std::vector<Happening> all{Happening::kStarted, Happening::kRequeued,
                                          Happening::kSucceeded, Happening::kFailed,
                                          Happening::kStopped};
  return all;
}

// After a mismatch, only the last '*' takes one more character: earlier ones need not be revisited,
// so the time is at most the product of both lengths.
bool matches_pattern(std::string_view pattern, std::string_view name) {
  size_t at = 0;
  size_t star = std::string_view::npos;
  size_t resume = 0;
  for (size_t i = 0; i < name.size();) {
    if (at < pattern.size() && pattern[at] == '*') {
      star = at++;
      resume = i;
    } else if (at < pattern.size() && (pattern[at] == '?' || pattern[at] == name[i])) {
      ++at;
      ++i;
    } else if (star != std::string_view::npos) {
      at = star + 1;
      i = ++resume;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', std::min(at, pattern.size())) == std::string_view::npos;
}

std::string origin_of(std::string_view url) {
  const size_t scheme = url.find("://");
  if (scheme == std::string_view::npos) return {};
  return std::string(url.substr(0, url.find_first_of("/?#", scheme + 3)));
}

using record::As;
using record::field;
using record::Kept;
using record::Need;
using record::Sent;
using record::Table;

namespace {

constexpr const char* kLabelTexts = R"({"additionalProperties": {"type": "string"}})";

}  // namespace

const Table& table_of(const Subscription*) {
  static const Table table =
      record::table<Subscription>(
          "Subscription",
          {field<&Subscription::id>("id", {.need = Need::kRequired}),
           field<&Subscription::project>("project", {.need = Need::kRequired}),
           field<&Subscription::url>(
               "url", {.help = "Without its path, unless the caller is an admin of the project.",
                       .need = Need::kRequired}),
           field<&Subscription::on>("on", {.need = Need::kRequired}),
           field<&Subscription::job>("job", {.sent = Sent::kAlways}),
           field<&Subscription::labels>("labels", {.sent = Sent::kAlways, .schema = kLabelTexts}),
           field<&Subscription::with_lines>("with_lines", {.sent = Sent::kAlways}),
           field<&Subscription::members>("members", {.sent = Sent::kAlways}),
           field<&Subscription::sealed_key>("sealed_key",
                                            {.need = Need::kRequired, .kept = Kept::kStoreOnly}),
           field<&Subscription::created>("created", {.need = Need::kRequired}),
           field<&Subscription::created_by>("created_by", {.sent = Sent::kAlways}),
           field<&Subscription::gone>(
               "gone", {.help = "When the receiver answered 410. Since then nothing is sent.",
                        .sent = Sent::kAlways,
                        .null = "the receiver has not answered 410"})})
          .as_answer();
  return table;
}

const Table& table_of(const Delivery*) {
  static const Table table =
      record::table<Delivery>(
          "DeadLetter",
          {field<&Delivery::id>("id", {.need = Need::kRequired}),
           field<&Delivery::subscription>("subscription",
                                          {.help = "Its id.", .need = Need::kRequired}),
           field<&Delivery::project>("project",
                                     {.need = Need::kRequired, .kept = Kept::kStoreOnly}),
           field<&Delivery::happening>("event", {.need = Need::kRequired}),
           field<&Delivery::object>(
               "object", {.help = "`array` or `sweep`; absent: the event is that of a job."}),
           field<&Delivery::job>("job", {.sent = Sent::kAlways}),
           field<&Delivery::body>("body", {.kept = Kept::kStoreOnly}),
           field<&Delivery::created>("created", {.need = Need::kRequired}),
           field<&Delivery::attempts>("attempts", {.sent = Sent::kAlways, .least = 0}),
           field<&Delivery::next>("next", {.need = Need::kRequired, .kept = Kept::kStoreOnly}),
           field<&Delivery::fault>("fault",
                                   {.help = "Why the last attempt failed.", .sent = Sent::kAlways},
                                   As::kProse),
           field<&Delivery::dead>("dead", {.help = "When it was given up.",
                                           .sent = Sent::kAlways,
                                           .null = "it has not been given up"})})
          .as_answer();
  return table;
}

}  // namespace muster::job
