#include "workspace/refusal.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/text.h"
#include "workspace/path_text.h"

namespace muster::workspace {

using base::Error;
using base::ErrorCode;
using base::Fault;

namespace {

using Named = std::pair<std::string, Amount>;

/// The folder that is the bulk of `folder`, however deep: "app/web/node_modules/" says more than
/// "app/".
Named bulk_of(const Walk& walk, Named folder, int64_t (*size)(const Amount&)) {
  const auto is_bulk = [&](const Amount& part) {
    return size(part) * 5 >= size(folder.second) * 4;
  };
  auto at = walk.amounts.upper_bound(folder.first);
  while (at != walk.amounts.end() && at->first.starts_with(folder.first)) {
    if (is_bulk(at->second)) folder = *at;
    ++at;
  }
  return folder;
}

std::vector<Fault> largest(const Walk& walk, int64_t (*size)(const Amount&)) {
  constexpr size_t kShown = 5;
  std::vector<Named> parts;
  for (const auto& [name, amount] : walk.amounts) {
    if (name.find('/') >= name.size() - 1 && size(amount) > 0) parts.emplace_back(name, amount);
  }
  std::stable_sort(parts.begin(), parts.end(), [&](const Named& one, const Named& other) {
    return size(one.second) > size(other.second);
  });
  parts.resize(std::min(parts.size(), kShown));
  std::vector<Fault> faults;
  for (Named& part : parts) {
    if (part.first.ends_with('/')) part = bulk_of(walk, std::move(part), size);
    const auto& [name, amount] = part;
    const std::string in =
        name.ends_with('/') ? " in " + count_text(amount.entries, "entry", "entries") : "";
    faults.push_back({.field = shown(name), .what = "has " + size_text(amount.bytes) + in});
  }
  return faults;
}

int64_t bytes_in(const Amount& amount) {
  return amount.bytes;
}
int64_t entries_in(const Amount& amount) {
  return static_cast<int64_t>(amount.entries);
}

/// In whole GiB, as MUSTER_WORKSPACE_LIMIT takes it.
std::string limit_for(int64_t bytes) {
  constexpr int64_t kGibi = int64_t{1} << 30;
  return std::to_string(bytes / kGibi + (bytes % kGibi != 0 ? 1 : 0)) + "G";
}

void append_part(std::string& text, const std::string& separator, const std::string& more) {
  if (!text.empty()) text += separator;
  text += more;
}

}  // namespace

std::optional<Error> refusal_of(const std::filesystem::path& folder, const Walk& walk,
                                const ScanOptions& options) {
  const bool too_large = walk.all.bytes > options.most_bytes;
  const bool too_many = walk.all.entries > options.most_entries;
  if (!too_large && !too_many && walk.faults.empty()) return std::nullopt;
  std::string what;
  std::string advice;
  std::vector<Fault> faults = walk.faults.to_vector();
  const std::string at_least = walk.whole ? "" : "at least ";
  if (too_large) {
    append_part(what, "; ",
                "it has " + at_least + size_text(walk.all.bytes) + ", and at most " +
                    size_text(options.most_bytes) + " is sent");
  }
  if (too_many) {
    append_part(what, "; ",
                "it has " + at_least + count_text(walk.all.entries, "entry", "entries") +
                    ", and at most " + count_text(options.most_entries, "entry", "entries") +
                    " are sent");
  }
  if (too_large || too_many) {
    const auto parts = largest(walk, too_large ? bytes_in : entries_in);
    faults.insert(faults.end(), parts.begin(), parts.end());
    advice = "leave out what the job does not need, by a line in .gitignore or by " +
             options.flags.ignore;
  }
  if (too_large && walk.whole) {
    advice += ", or raise the limit: MUSTER_WORKSPACE_LIMIT=" + limit_for(walk.all.bytes);
  }
  if (!walk.faults.empty()) {
    append_part(what, "; ", "there is something in it that cannot be sent");
    append_part(advice, "; ",
                "make links relative and within the folder, and leave out by .gitignore or " +
                    options.flags.ignore + " what no file, folder or such link is");
  }
  return Error{.code = ErrorCode::kInvalid,
               .what = "the workspace " + shown(folder.native()) + " is not sent: " + what,
               .advice = std::move(advice),
               .faults = std::move(faults)};
}

}  // namespace muster::workspace
