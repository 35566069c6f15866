#include "engine/kubernetes/descriptor_room.h"

#include <algorithm>
#include <string>

namespace muster::engine::kubernetes {

using base::Error;
using base::ErrorCode;

namespace {

/// For clients, logs, sessions in pods, and requests to the API server: one part of so many.
constexpr int64_t kReservedPart = 8;

bool has_descriptors(const PodGang& gang) {
  return gang.has_descriptors || !gang.uid.empty();
}

/// Each connection takes one.
int64_t of_connections_to(const PodGang& gang) {
  return static_cast<int64_t>(gang.pods.size());
}

}  // namespace

int64_t DescriptorRoom::usable() const {
  return limit_ - limit_ / kReservedPart;
}

void DescriptorRoom::count() {
  const base::Descriptors counted = options_.count();
  int64_t of_pods = 0;
  for (const PodGangPointer& gang : gangs_.all()) {
    of_pods += std::count_if(gang->tasks.begin(), gang->tasks.end(),
                             [](const auto& named) { return named.second->line != nullptr; });
  }
  others_ = std::max<int64_t>(counted.open - of_pods, 0);
  limit_ = counted.limit;
  timer_ = loop_.after(options_.pause, [this] { look(); });
}

bool DescriptorRoom::has_room_for(const PodGang& gang) const {
  int64_t promised = of_connections_to(gang);
  for (const PodGangPointer& other : gangs_.all()) {
    if (has_descriptors(*other)) promised += of_connections_to(*other);
  }
  return others_ + promised <= usable();
}

Error DescriptorRoom::shortage(const PodGang& gang) const {
  const std::string pods =
      gang.pods.size() == 1 ? "its pod" : "its " + std::to_string(gang.pods.size()) + " pods";
  return {.code = ErrorCode::kExhausted,
          .what =
              "the connection to each pod is an open file, and the server's limit of open "
              "files, " +
              std::to_string(limit_) + ", leaves too few for " + pods +
              " beside its other jobs; to raise it, set LimitNOFILE of the server's service, "
              "or ulimit -Hn"};
}

bool DescriptorRoom::admit(const PodGangPointer& gang) {
  if (has_descriptors(*gang)) return true;
  const bool waits = std::any_of(waiting_.begin(), waiting_.end(),
                                 [&](const auto& waiting) { return waiting.lock() == gang; });
  if (waits) return false;
  if (!timer_) count();
  gang->has_descriptors = waiting_.empty() && has_room_for(*gang);
  if (gang->has_descriptors) return true;
  Error error = shortage(*gang);
  if (of_connections_to(*gang) > usable()) {
    gang->fault = std::move(error);
    return false;
  }
  gang->refusal = std::move(error);
  waiting_.push_back(gang);
  return false;
}

void DescriptorRoom::look() {
  timer_.reset();
  while (!waiting_.empty()) {
    const PodGangPointer first = waiting_.front().lock();
    const bool is_over = first == nullptr || first->is_releasing;
    if (!is_over && !timer_) count();
    if (!is_over && !has_room_for(*first)) return;
    waiting_.pop_front();
    if (is_over) continue;
    first->has_descriptors = true;
    first->refusal.reset();
    go_(first);
  }
}

}  // namespace muster::engine::kubernetes
