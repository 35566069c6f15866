#include "session/coordinator.h"

#include <algorithm>
#include <utility>

namespace muster::collective::session {
namespace {

// A record is copied to every rank; more tensors than this gain nothing. The news of a record, with
// long names, must not exceed the size of the channel either, which takes any but a very long
// record.
constexpr std::size_t kMostEntries = 1024;
constexpr std::size_t kMostNewsBytes = std::size_t{128} << 10;

constexpr std::size_t kForgottenTogether = 64;

bool fuses(const Request& one, const Request& other) {
  return one.call.kind == CallKind::kAllReduce && other.call.kind == CallKind::kAllReduce &&
         one.call.type == other.call.type && one.call.reduction == other.call.reduction;
}

std::vector<std::uint64_t> gathered_of(
    const std::vector<std::shared_ptr<const Request>>& requests) {
  std::vector<std::uint64_t> gathered;
  for (const auto& request : requests) {
    gathered.insert(gathered.end(), request->lengths.begin(), request->lengths.end());
  }
  return gathered;
}

}  // namespace

Coordinator::Coordinator(std::vector<std::string> hosts, std::uint64_t fusion_bytes,
                         std::size_t most_names, std::uint32_t first_id)
    : hosts_(std::move(hosts)),
      fusion_bytes_(fusion_bytes),
      most_names_(most_names),
      joined_(hosts_.size()),
      stragglers_(static_cast<int>(hosts_.size()), {}),
      next_id_(first_id) {}

bool Coordinator::take(int from, ByteView message, Deadline time) {
  std::optional<HandOver> decoded = decode_hand_over(message);
  if (!decoded) return false;
  if (ended_) return true;
  if (auto* news = std::get_if<New>(&*decoded)) {
    Request& request = news->request;
    const bool all_to_all = request.call.kind == CallKind::kAllToAll;
    const bool all_gather = request.call.kind == CallKind::kAllGather;
    if ((all_to_all && request.lengths.size() != hosts_.size()) ||
        (all_gather && request.lengths.size() != 1)) {
      return false;
    }
    // Each rank would store a number for each rank. The ranks exchange them (Executor::all_to_all).
    if (all_to_all) request.lengths = {bytes_of(request)};
    Name& name = name_of(news->name);
    record_request(name, from, request);
    if (all_to_all) name.is_new = true;  // the lengths have changed, and perhaps not their sum
    hand_over(name, from, time);
  } else if (const auto* again = std::get_if<Again>(&*decoded)) {
    // A forgotten id is not an error: its rank receives a Forget record, and sends the name again.
    const auto found = by_id_.find(again->id);
    if (found == by_id_.end()) return true;
    Name& name = *found->second;
    if (name.requests[static_cast<std::size_t>(from)] == nullptr) return false;
    hand_over(name, from, time);
  } else if (std::holds_alternative<Join>(*decoded)) {
    join(from);
  } else if (const auto* links = std::get_if<LinkReport>(&*decoded)) {
    stragglers_.take(from, *links);
  } else {
    ended_ = true;
    announcements_.emplace_back(Left{from});
    complete_.clear();
    pending_.clear();
  }
  return true;
}

Coordinator::Name& Coordinator::name_of(std::string_view text) {
  std::string key(text);
  const auto found = names_.find(key);
  if (found != names_.end()) return *found->second;
  if (names_.size() >= most_names_) forget_old_names();
  if (once_count_ >= kMostOnce) forget_names_of_once();
  auto name = std::make_unique<Name>();
  // 0 is not an id. After 2^32 names, the first ones may still be in use.
  do {
    name->id = next_id_++;
  } while (name->id == 0 || by_id_.contains(name->id));
  name->text = key;
  name->tally = tally_of(key);
  name->requests.resize(hosts_.size());
  name->has.resize(hosts_.size());
  Name& added = *name;
  by_id_[added.id] = &added;
  once_.push_back(added.id);
  ++once_count_;
  names_.emplace(std::move(key), std::move(name));
  return added;
}

void Coordinator::record_request(Name& name, int from, const Request& request) {
  std::shared_ptr<const Request>& mine = name.requests[static_cast<std::size_t>(from)];
  if (mine && *mine == request) return;
  name.is_new = true;
  // Usually all ranks request the same operation, and share one copy of the request.
  for (const auto& other : name.requests) {
    if (other && *other == request) {
      mine = other;
      return;
    }
  }
  mine = std::make_shared<const Request>(request);
}

void Coordinator::hand_over(Name& name, int from, Deadline time) {
  char& has = name.has[static_cast<std::size_t>(from)];
  if (has != 0) return;  // a second hand-over of one rank is an error, and ignored
  has = 1;
  name.used = ++uses_;
  // A name that was given up is already in complete_. The last rank may still hand it over.
  if (name.given_up) {
    name.last = from;
    ++name.count;
    if (is_complete(name)) name.given_up.reset();
    return;
  }
  if (name.count++ == 0) {
    name.since = time;
    name.latest = Deadline::min();
    name.reported = false;
    name.place = pending_.size();
    pending_.push_back(&name);
  }
  name.since = std::min(name.since, time);
  if (time >= name.latest) {
    name.before = std::exchange(name.latest, time);
    name.last = from;
  } else {
    name.before = std::max(name.before, time);
  }
  if (!is_complete(name)) return;
  if (name.count > 1) stragglers_.completed(name.last, name.before, name.latest);
  complete(name);
}

bool Coordinator::is_complete(const Name& name) const {
  if (name.count == static_cast<int>(hosts_.size())) return true;
  if (joined_count_ == 0) return false;
  for (std::size_t rank = 0; rank < hosts_.size(); ++rank) {
    if (name.has[rank] == 0 && joined_[rank] == 0) return false;
  }
  return true;
}

void Coordinator::complete(Name& name) {
  pending_.back()->place = name.place;
  std::swap(pending_[name.place], pending_.back());
  pending_.pop_back();
  complete_.push_back(&name);
}

void Coordinator::join(int from) {
  char& joined = joined_[static_cast<std::size_t>(from)];
  if (joined != 0) return;
  joined = 1;
  ++joined_count_;
  for (std::size_t i = 0; i < pending_.size();) {
    if (is_complete(*pending_[i])) {
      complete(*pending_[i]);
    } else {
      ++i;
    }
  }
  if (joined_count_ < static_cast<int>(hosts_.size())) return;
  // Complete names come first: cut() looks at the batches before this announcement.
  announcements_.emplace_back(AllJoined{from});
}

// Forgets the least recently used half of the names that are not being handed over.
void Coordinator::forget_old_names() {
  std::vector<Name*> idle;
  for (const auto& [text, name] : names_) {
    if (name->count == 0) idle.push_back(name.get());
  }
  std::ranges::sort(idle, {}, &Name::used);
  idle.resize((idle.size() + 1) / 2);
  if (idle.empty()) return;
  forget(idle);
  std::erase_if(once_, [this](std::uint32_t id) {
    const auto found = by_id_.find(id);
    return found == by_id_.end() || !found->second->only_once;
  });
}

// Forgets the oldest names that were used once. Names that are being handed over stay for another
// turn.
void Coordinator::forget_names_of_once() {
  std::vector<Name*> idle;
  const std::size_t looked_at = std::min(once_.size(), 2 * kForgottenTogether);
  for (std::size_t i = 0; i < looked_at && idle.size() < kForgottenTogether; ++i) {
    const std::uint32_t id = once_.front();
    once_.pop_front();
    const auto found = by_id_.find(id);
    if (found == by_id_.end() || !found->second->only_once) continue;
    if (found->second->count == 0) {
      idle.push_back(found->second);
    } else {
      once_.push_back(id);
    }
  }
  if (!idle.empty()) forget(idle);
}

void Coordinator::forget(const std::vector<Name*>& names) {
  Forget record;
  for (const Name* name : names) {
    record.ids.push_back(name->id);
    if (name->only_once) --once_count_;
    by_id_.erase(name->id);
    names_.erase(names_.find(name->text));
  }
  announcements_.emplace_back(std::move(record));
}

std::optional<Error> Coordinator::fault_of(const Name& name, int first) const {
  const Request& request = *name.requests[static_cast<std::size_t>(first)];
  for (std::size_t rank = 0; rank < hosts_.size(); ++rank) {
    if (name.has[rank] == 0 || agree(request, *name.requests[rank])) continue;
    return mismatch(name.text, {who(first), request},
                    {who(static_cast<int>(rank)), *name.requests[rank]});
  }
  if (name.given_up) return not_handed_over(name);
  if (request.call.kind == CallKind::kAllReduce) return std::nullopt;
  for (std::size_t rank = 0; rank < hosts_.size(); ++rank) {
    if (name.has[rank] != 0) continue;
    return Error{.code = ErrorCode::kMismatch,
                 .message = std::string(to_string(request.call.kind)) + " '" + name.text +
                            "' while " + who(static_cast<int>(rank)) + " has joined",
                 .advice = "only all_reduce is possible until all ranks have joined",
                 .rank = static_cast<int>(rank),
                 .host = hosts_[rank]};
  }
  return std::nullopt;
}

std::shared_ptr<const Agreed> Coordinator::judge(const Name& name) const {
  const auto first = static_cast<std::size_t>(std::ranges::find(name.has, 1) - name.has.begin());
  auto agreed = std::make_shared<Agreed>();
  agreed->name = name.text;
  agreed->request = {name.requests[first]->call, name.requests[first]->lengths};
  agreed->error = fault_of(name, static_cast<int>(first));
  if (!agreed->error && agreed->request.call.kind == CallKind::kAllGather) {
    agreed->gathered = gathered_of(name.requests);
  }
  return agreed;
}

// An operation that ranks have joined without handing it over must be judged each time.
Entry Coordinator::entry_of(Name& name) {
  Entry entry{.id = name.id, .last = name.last, .tally = name.tally, .hand_overs = name.count};
  const bool all = name.count == static_cast<int>(hosts_.size()) && !name.given_up;
  if (name.is_new || !all) entry.news = judge(name);
  name.is_new = entry.news && (entry.news->error || !all);
  if (std::exchange(name.carried_out, true) && std::exchange(name.only_once, false)) --once_count_;
  name.count = 0;
  name.given_up.reset();
  std::ranges::fill(name.has, 0);
  return entry;
}

Record Coordinator::cut() {
  cut_bytes_ = 0;
  const bool all_joined =
      !announcements_.empty() && std::holds_alternative<AllJoined>(announcements_.front());
  if (!announcements_.empty() && !(all_joined && !complete_.empty())) {
    Record record = std::move(announcements_.front());
    announcements_.pop_front();
    if (all_joined) {
      std::ranges::fill(joined_, 0);
      joined_count_ = 0;
    }
    return record;
  }
  Batch batch;
  Name& first = *complete_.front();
  complete_.pop_front();
  const auto lowest = static_cast<std::size_t>(std::ranges::find(first.has, 1) - first.has.begin());
  const std::shared_ptr<const Request> request = first.requests[lowest];
  const auto agreed_on = [](const Name& name, const Entry& entry) {
    return !name.is_new || (entry.news && !entry.news->error);
  };
  batch.entries.push_back(entry_of(first));
  cut_bytes_ = bytes_of(*request);
  if (!agreed_on(first, batch.entries.back())) return batch;
  if (request->call.kind != CallKind::kAllReduce) return batch;
  std::size_t news_bytes = 0;
  // Names that do not fit keep their place for the next record.
  for (auto next = complete_.begin(); next != complete_.end();) {
    if (batch.entries.size() >= kMostEntries) break;
    Name& name = **next;
    const auto rank = static_cast<std::size_t>(std::ranges::find(name.has, 1) - name.has.begin());
    const Request& other = *name.requests[rank];
    const std::size_t news = name.is_new ? name.text.size() + kCallHeaderBytes : 0;
    if (!fuses(*request, other) || cut_bytes_ + bytes_of(other) > fusion_bytes_ ||
        news_bytes + news > kMostNewsBytes ||
        ((name.is_new || name.given_up) && fault_of(name, static_cast<int>(rank)))) {
      ++next;
      continue;
    }
    cut_bytes_ += bytes_of(other);
    news_bytes += news;
    batch.entries.push_back(entry_of(name));
    next = complete_.erase(next);
  }
  return batch;
}

std::string Coordinator::who(int rank) const {
  return "rank " + std::to_string(rank) + " on host " + hosts_[static_cast<std::size_t>(rank)];
}

std::vector<std::string> Coordinator::stalled(Deadline now, std::chrono::milliseconds patience) {
  std::vector<std::string> reports;
  for (Name* name : pending_) {
    if (name->reported || now < name->since + patience) continue;
    name->reported = true;
    reports.push_back(
        report(*name, std::chrono::floor<std::chrono::milliseconds>(now - name->since)));
  }
  return reports;
}

std::optional<Deadline> Coordinator::next_stall(std::chrono::milliseconds patience) const {
  std::optional<Deadline> next;
  for (const Name* name : pending_) {
    const Deadline due = name->since + patience;
    if (!name->reported && (!next || due < *next)) next = due;
  }
  return next;
}

void Coordinator::give_up(Deadline now, std::chrono::milliseconds limit) {
  for (std::size_t i = 0; i < pending_.size();) {
    Name& name = *pending_[i];
    if (now < name.since + limit) {
      ++i;
      continue;
    }
    name.given_up = std::chrono::floor<std::chrono::milliseconds>(now - name.since);
    complete(name);
  }
}

std::optional<Deadline> Coordinator::next_give_up(std::chrono::milliseconds limit) const {
  if (pending_.empty()) return std::nullopt;
  return (*std::ranges::min_element(pending_, {}, &Name::since))->since + limit;
}

Error Coordinator::not_handed_over(const Name& name) const {
  std::size_t missing = 0;
  while (missing + 1 < hosts_.size() && (name.has[missing] != 0 || joined_[missing] != 0))
    ++missing;
  return {.code = ErrorCode::kTimeout,
          .message = report(name, *name.given_up) + " and failed",
          .advice = "check why that rank has not handed it over, or raise the stall limit",
          .rank = static_cast<int>(missing),
          .host = hosts_[missing]};
}

std::string Coordinator::report(const Name& name, std::chrono::milliseconds waited) const {
  std::vector<std::string> ranks;
  std::vector<std::string> hosts;
  for (std::size_t rank = 0; rank < hosts_.size(); ++rank) {
    if (name.has[rank] != 0 || joined_[rank] != 0) continue;
    ranks.push_back(std::to_string(rank));
    if (std::ranges::find(hosts, hosts_[rank]) == hosts.end()) hosts.push_back(hosts_[rank]);
  }
  const auto list = [](const std::vector<std::string>& words) {
    std::string text;
    for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
    return text;
  };
  // A precision of tenths is enough.
  const std::chrono::milliseconds rounded(waited.count() / 100 * 100);
  return "'" + name.text + "' has waited " + in_seconds(rounded) +
         (ranks.size() == 1 ? " for rank " : " for ranks ") + list(ranks) +
         (hosts.size() == 1 ? " (on host " : " (on hosts ") + list(hosts) + ")";
}

}  // namespace muster::collective::session
