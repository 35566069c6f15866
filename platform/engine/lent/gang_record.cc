#include "engine/lent/gang_record.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>
#include <utility>

#include "base/files.h"
#include "base/json_text.h"
#include "base/log.h"
#include "base/random.h"
#include "base/unique_fd.h"
#include "base/units.h"
#include "job/fact_json.h"

namespace muster::engine::lent {

namespace fs = std::filesystem;

using base::Error;
using base::ErrorCode;
using base::Result;
using nlohmann::json;

namespace {

constexpr size_t kLongestRecord = 16 << 20;

json as_json(const Seat& seat) {
  return {
      {"task", seat.task},       {"component", seat.component},           {"index", seat.index},
      {"gpus", seat.gpus},       {"may_be_missing", seat.may_be_missing}, {"node", seat.node},
      {"address", seat.address}, {"shares_folder", seat.shares_folder},   {"started", seat.started},
      {"start", seat.start},     {"has_artifacts", seat.has_artifacts},   {"left", seat.left}};
}

Seat seat_from(const json& text) {
  return {.task = text.at("task"),
          .component = text.at("component"),
          .index = text.at("index"),
          .gpus = text.at("gpus"),
          .may_be_missing = text.at("may_be_missing"),
          .node = text.at("node"),
          .address = text.at("address"),
          .shares_folder = text.at("shares_folder"),
          .started = text.at("started"),
          .start = text.value("start", uint64_t{1}),
          .has_artifacts = text.at("has_artifacts"),
          .left = text.at("left")};
}

json as_json(const std::optional<AllocationRevoked>& taken) {
  if (!taken) return nullptr;
  return {{"why", static_cast<int>(taken->why)},
          {"end", base::parse_json_or_throw(job::data_of(taken->end))},
          {"printed", taken->printed},
          {"advice", taken->advice},
          {"node", taken->node}};
}

std::optional<AllocationRevoked> taken_of(const json& text) {
  if (text.is_null()) return std::nullopt;
  AllocationRevoked taken{.advice = text.at("advice"),
                          .node = text.at("node"),
                          .printed = text.at("printed").get<std::vector<std::string>>()};
  const auto end = record::ValueTree::of(text.at("end"));
  if (auto known = job::allocation_end_of(end.root())) taken.end = *std::move(known);
  const int why = text.at("why");
  for (const auto each : {AllocationRevoked::Why::kEvicted, AllocationRevoked::Why::kNodeLost,
                          AllocationRevoked::Why::kCancelled, AllocationRevoked::Why::kFailed}) {
    if (why == static_cast<int>(each)) taken.why = each;
  }
  return taken;
}

Error cannot_list(const fs::path& folder, const std::error_code& why) {
  Error error = base::system_error("cannot list '" + folder.string() + "'", why.value());
  error.advice = "make this folder readable: jobs that run may have their files there";
  return error;
}

/// The entries of a folder. A path without a folder has none.
Result<std::vector<fs::directory_entry>> entries_of(const fs::path& folder) {
  std::vector<fs::directory_entry> entries;
  std::error_code error;
  fs::directory_iterator each(folder, error);
  for (; !error && each != fs::directory_iterator(); each.increment(error)) {
    entries.push_back(*each);
  }
  const bool has_none =
      error == std::errc::no_such_file_or_directory || error == std::errc::not_a_directory;
  if (error && !has_none) return cannot_list(folder, error);
  return entries;
}

/// A folder of another kind, such as lost+found, may be closed to the server.
bool may_name_a_job(const std::string& folder) {
  return std::all_of(folder.begin(), folder.end(), [](char letter) {
    return (letter >= 'a' && letter <= 'z') || (letter >= '0' && letter <= '9');
  });
}

/// Folders of attempts: their names are whole numbers.
Result<std::vector<int>> attempts_in(const fs::path& job_folder) {
  std::vector<int> attempts;
  const auto entries = entries_of(job_folder);
  if (!entries && !may_name_a_job(job_folder.filename().string())) return attempts;
  if (!entries) return entries.error();
  for (const fs::directory_entry& entry : *entries) {
    const auto number = base::number_of<int>(entry.path().filename().string());
    if (number) attempts.push_back(*number);
  }
  std::sort(attempts.begin(), attempts.end());
  return attempts;
}

}  // namespace

void add_to(json& object, const GangRecord& record) {
  json seats = json::array();
  for (const Seat& seat : record.seats) seats.push_back(as_json(seat));
  object["key"] = base::to_hex(record.key);
  object["seats"] = std::move(seats);
  object["given"] = record.given;
  object["taken"] = as_json(record.taken);
  object["queued_again"] = record.queued_again;
  object["given_back"] = record.given_back;
}

Result<GangRecord> gang_record_of(const json& object) {
  try {
    GangRecord record{.given = object.at("given"),
                      .taken = taken_of(object.at("taken")),
                      .queued_again = object.at("queued_again"),
                      .given_back = object.at("given_back")};
    for (const json& seat : object.at("seats")) record.seats.push_back(seat_from(seat));
    MUSTER_TRY(record.key, rsh::read_key(object.at("key").get<std::string>() + "\n"));
    return record;
  } catch (const json::exception&) {
    return Error{.code = ErrorCode::kInvalid, .what = "cannot read the record of a gang"};
  }
}

Result<std::vector<FoundRecord>> records_in(const fs::path& jobs_folder, const std::string& name) {
  std::vector<FoundRecord> found;
  std::error_code error;
  MUSTER_TRY(const std::vector<fs::directory_entry> jobs, entries_of(jobs_folder));
  for (const fs::directory_entry& entry : jobs) {
    MUSTER_TRY(const std::vector<int> attempts, attempts_in(entry.path()));
    for (const int attempt : attempts) {
      const fs::path path = entry.path() / std::to_string(attempt) / name;
      if (!fs::exists(path, error) && !error) continue;
      auto text = base::read_file(path, kLongestRecord);
      if (!text) {
        base::log_error("'" + path.string() + "': " + text.error().what);
        text = std::string();
      }
      found.push_back({{entry.path().filename().string(), attempt}, path, *std::move(text)});
    }
  }
  return found;
}

Result<std::vector<std::string>> started_tasks_in(const fs::path& attempt_folder) {
  std::vector<std::string> tasks;
  MUSTER_TRY(const std::vector<fs::directory_entry> entries, entries_of(attempt_folder));
  for (const fs::directory_entry& entry : entries) {
    std::error_code error;
    const bool is_folder = entry.symlink_status(error).type() == fs::file_type::directory;
    if (error && error != std::errc::no_such_file_or_directory) {
      return cannot_list(attempt_folder, error);
    }
    if (is_folder) tasks.push_back(entry.path().filename().string());
  }
  std::sort(tasks.begin(), tasks.end());
  return tasks;
}

// --- writing

namespace {

/// For more records than this, syncing the whole file system is faster than syncing each file.
constexpr size_t kFewRecords = 4;

std::string record_draft(const fs::path& path) {
  return path.string() + ".draft";
}

Result<void> sync(const fs::path& path, int flags) {
  const base::UniqueFd file(::open(path.c_str(), flags | O_CLOEXEC));
  if (!file || ::fsync(file.get()) != 0) {
    return base::system_error("cannot write '" + path.string() + "'", errno);
  }
  return {};
}

/// Syncs the whole file system.
Result<void> sync_all(const fs::path& folder) {
  const base::UniqueFd file(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!file || ::syncfs(file.get()) != 0) {
    return base::system_error("cannot sync the disk of '" + folder.string() + "'", errno);
  }
  return {};
}

Result<void> put_in_place(const fs::path& path) {
  std::error_code error;
  fs::rename(record_draft(path), path, error);
  if (error) return base::system_error("cannot write '" + path.string() + "'", error.value());
  return {};
}

Result<void> sync_folders(const fs::path& path) {
  MUSTER_CHECK(sync(path.parent_path(), O_RDONLY | O_DIRECTORY));
  return sync(path.parent_path().parent_path(), O_RDONLY | O_DIRECTORY);
}

}  // namespace

void RecordWriter::keep(fs::path path, std::string text, Done done) {
  waiting_.push_back(
      {.path = std::move(path), .text = std::move(text), .done = std::move(done), .outcome = {}});
  if (!is_writing_) write_all();
}

void RecordWriter::write_all() {
  is_writing_ = true;
  const auto writes = std::make_shared<std::vector<PendingWrite>>(std::exchange(waiting_, {}));
  writing_.run([writes] { write(*writes); },
               [this, writes] {
                 is_writing_ = false;
                 if (!waiting_.empty()) write_all();
                 for (PendingWrite& pending : *writes) pending.done(std::move(pending.outcome));
               });
}

/// On the other thread. A file is synced before it is renamed, and its folder after that.
void RecordWriter::write(std::vector<PendingWrite>& writes) {
  const bool together = writes.size() > kFewRecords;
  const auto each = [&](const std::function<Result<void>(const PendingWrite&)>& step) {
    for (PendingWrite& pending : writes) {
      if (pending.outcome) pending.outcome = step(pending);
    }
  };
  const auto sync_together = [&] {
    auto synced = sync_all(writes.front().path.parent_path().parent_path().parent_path());
    each([&](const PendingWrite&) { return synced; });
  };
  each([](const PendingWrite& pending) {
    return base::write_file(record_draft(pending.path), pending.text);
  });
  if (together) {
    sync_together();
  } else {
    each([](const PendingWrite& pending) { return sync(record_draft(pending.path), O_WRONLY); });
  }
  each([](const PendingWrite& pending) { return put_in_place(pending.path); });
  if (together) {
    sync_together();
  } else {
    each([](const PendingWrite& pending) { return sync_folders(pending.path); });
  }
}

}  // namespace muster::engine::lent
