#include "engine/process/accounts.h"

#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "base/files.h"
#include "base/subprocess.h"
#include "base/text.h"
#include "base/units.h"
#include "engine/host_facts.h"

namespace muster::engine {

namespace fs = std::filesystem;

using base::Error;
using base::ErrorCode;
using base::Fault;
using base::Result;
using base::single_quoted;

namespace {

using BookLines = std::vector<std::pair<std::string, IdRange>>;

constexpr const char* kBookHead =
    "# Which ids the tasks of each user have: UID GID COUNT USER. Written by Muster. Remove no "
    "line\n"
    "# while files with its ids exist.\n";

std::string text_of(const BookLines& lines) {
  std::string text = kBookHead;
  for (const auto& [name, range] : lines) {
    text += std::to_string(range.uid) + " " + std::to_string(range.gid) + " " +
            std::to_string(range.count) + " " + name + "\n";
  }
  return text;
}

/// The first ids of the spans that no line has.
std::optional<uint32_t> first_free(const std::vector<IdSpan>& spans, uint32_t count,
                                   const std::vector<IdSpan>& taken) {
  for (const IdSpan& span : spans) {
    for (uint64_t at = span.first; at + count <= uint64_t{span.first} + span.count;) {
      const IdSpan candidate{.first = static_cast<uint32_t>(at), .count = count};
      const auto other = std::find_if(taken.begin(), taken.end(),
                                      [&](const IdSpan& each) { return each.overlaps(candidate); });
      if (other == taken.end()) return candidate.first;
      at = uint64_t{other->first} + other->count;
    }
  }
  return std::nullopt;
}

/// A power cut must not undo it: a file could have the ids by then.
Result<void> write_to_disk(const fs::path& path, const std::string& text) {
  MUSTER_CHECK(base::write_file(path, text));
  const base::UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file && ::syncfs(file.get()) == 0) return {};
  return base::system_error("cannot write '" + path.string() + "' to disk", errno);
}

uint64_t room_of(const std::vector<IdSpan>& spans, uint32_t count) {
  uint64_t room = 0;
  for (const IdSpan& span : spans) room += span.count / count;
  return room;
}

}  // namespace

Result<BookLines> IdBook::read(std::string_view text) {
  BookLines lines;
  for (const std::string& line : base::split(text, '\n')) {
    if (line.empty() || line.starts_with('#')) continue;
    const std::vector<std::string> words = base::split(line, ' ');
    const auto number = [&](size_t at) {
      return at < words.size() ? base::number_of<uint32_t>(words[at]) : std::nullopt;
    };
    if (words.size() != 4 || !number(0) || !number(1) || !number(2) || *number(2) == 0) {
      return Error{.code = ErrorCode::kInternal,
                   .what = "invalid line " + single_quoted(line) + ": not UID GID COUNT USER"};
    }
    lines.emplace_back(words[3],
                       IdRange{.uid = *number(0), .gid = *number(1), .count = *number(2)});
  }
  return lines;
}

Result<IdRange> IdBook::range_of(const std::string& name, const std::vector<IdSpan>& uids,
                                 const std::vector<IdSpan>& gids, uint32_t count) {
  if (name.empty() || name.find_first_of(" \n") != std::string::npos) {
    return Error{.code = ErrorCode::kInvalid,
                 .what = single_quoted(name) +
                         " cannot have user ids of its own: its name is empty "
                         "or has blanks"};
  }
  std::error_code error;
  std::string text;
  if (fs::exists(file_, error)) {
    MUSTER_TRY(text, base::read_file(file_));
  }
  auto read = IdBook::read(text);
  if (!read) {
    Error damaged = std::move(read).error();
    damaged.what = "cannot read '" + file_.string() + "': " + damaged.what;
    damaged.advice = "restore the file from a backup: it lists which user has which ids";
    return damaged;
  }
  BookLines lines = *std::move(read);
  std::vector<IdSpan> taken_uids;
  std::vector<IdSpan> taken_gids;
  for (const auto& [owner, range] : lines) {
    if (owner == name) return range;
    taken_uids.push_back({.first = range.uid, .count = range.count});
    taken_gids.push_back({.first = range.gid, .count = range.count});
  }
  const auto uid = first_free(uids, count, taken_uids);
  const auto gid = first_free(gids, count, taken_gids);
  if (!uid || !gid) {
    return Error{.code = ErrorCode::kExhausted,
                 .what = "no user ids are left for " + single_quoted(name) + ": " +
                         std::to_string(lines.size()) + " of " +
                         std::to_string(std::min(room_of(uids, count), room_of(gids, count))) +
                         " ranges are in use"};
  }
  const IdRange range{.uid = *uid, .gid = *gid, .count = count};
  lines.emplace_back(name, range);
  MUSTER_CHECK(write_to_disk(file_, text_of(lines)));
  return range;
}

// Where ids come from.

namespace {

Error no_accounts(std::string why, std::string advice) {
  return {.code = ErrorCode::kUnavailable, .what = std::move(why), .advice = std::move(advice)};
}

/// "0 0 4294967295": in a container that maps less, root has less.
bool may_map(std::string_view uid_map, const IdSpan& span) {
  for (const std::string& line : base::split(uid_map, '\n')) {
    std::vector<uint32_t> numbers;
    for (const std::string& word : base::split(line, ' ')) {
      if (const auto number = base::number_of<uint32_t>(word)) numbers.push_back(*number);
    }
    if (numbers.size() != 3) continue;
    const IdSpan known{.first = numbers[0], .count = numbers[2]};
    if (known.contains(span.first) && known.contains(span.first + span.count - 1)) return true;
  }
  return false;
}

void add_lent(std::string_view text, const char* file, const IdSpan& span,
              std::vector<Fault>& faults) {
  for (const std::string& line : base::split(text, '\n')) {
    const std::vector<std::string> parts = base::split(line, ':');
    if (parts.size() != 3) continue;
    const auto first = base::number_of<uint32_t>(parts[1]);
    const auto count = base::number_of<uint32_t>(parts[2]);
    if (!first || !count || *count == 0) continue;
    if (!span.overlaps({.first = *first, .count = *count})) continue;
    faults.push_back({.field = "tasks.subids",
                      .what = "overlaps the ids that " + std::string(file) + " assigns to '" +
                              parts[0] + "': " + parts[1] + ":" + parts[2]});
  }
}

/// All ids but the last, which stands for "no id".
constexpr IdSpan kAllIds{.first = 0, .count = 4'294'967'295};

Result<AccountSource> source_of_root(const AccountFacts& facts) {
  const IdSpan span = facts.subids.value_or(kTeamSubids);
  if (!may_map(facts.uid_map, span)) {
    return no_accounts("this system lets root use only a part of the ids (/proc/self/uid_map)",
                       "run the server outside of a container, or set tasks.subids to ids that "
                       "root may use");
  }
  std::vector<Fault> faults;
  add_lent(facts.subuid, "/etc/subuid", span, faults);
  add_lent(facts.subgid, "/etc/subgid", span, faults);
  for (const auto& [name, id] : facts.accounts) {
    if (!span.contains(id)) continue;
    faults.push_back({.field = "tasks.subids",
                      .what = "holds the id " + std::to_string(id) + " of '" + name + "'"});
  }
  if (!faults.empty()) {
    return Error{.code = ErrorCode::kInvalid,
                 .what = "the ids of tasks.subids are in use",
                 .advice = "choose ids that are not in use on this machine",
                 .faults = std::move(faults)};
  }
  return AccountSource{.is_root = true,
                       .uids = {span},
                       .gids = {span},
                       .place = "tasks.subids",
                       .advice = "give tasks.subids more ids: its first id stays, its count grows",
                       .book = {},
                       .space = std::nullopt,
                       .counts_apart = facts.has_user_namespaces &&
                                       may_map(facts.uid_map, kAllIds) &&
                                       may_map(facts.gid_map, kAllIds)};
}

Result<AccountSource> source_of_ordinary_account(const AccountFacts& facts) {
  for (const auto& [path, name] :
       {std::pair(facts.newuidmap, "newuidmap"), std::pair(facts.newgidmap, "newgidmap")}) {
    if (path.empty()) {
      return no_accounts(std::string(name) + " is not installed", "apt install uidmap");
    }
  }
  IdSpace space{.newuidmap = facts.newuidmap,
                .newgidmap = facts.newgidmap,
                .uids = lent_ids(facts.subuid, facts.user, facts.uid),
                .gids = lent_ids(facts.subgid, facts.user, facts.uid)};
  const std::string usermod =
      "usermod --add-subuids 200000-265535 --add-subgids 200000-265535 " + facts.user;
  for (const auto& [spans, file] :
       {std::pair(space.uids, "/etc/subuid"), std::pair(space.gids, "/etc/subgid")}) {
    if (spans.empty()) {
      return no_accounts(std::string(file) + " assigns no ids to '" + facts.user + "'", usermod);
    }
  }
  AccountSource source{.is_root = false,
                       .uids = space.uids,
                       .gids = space.gids,
                       // Tasks do not run as root, so one id is enough.
                       .count = 1,
                       .place = "/etc/subuid",
                       .advice = "assign more ids to the account: " + usermod,
                       .book = {},
                       .space = std::nullopt};
  source.space = std::move(space);
  return source;
}

/// The names and ids of this machine's own accounts and groups.
std::vector<std::pair<std::string, uint32_t>> known_ids() {
  std::vector<std::pair<std::string, uint32_t>> ids;
  for (const char* file : {"/etc/passwd", "/etc/group"}) {
    const auto text = base::read_file(file);
    if (!text) continue;
    for (const std::string& line : base::split(*text, '\n')) {
      const std::vector<std::string> parts = base::split(line, ':');
      const auto id = parts.size() > 2 ? base::number_of<uint32_t>(parts[2]) : std::nullopt;
      if (id) ids.emplace_back(parts[0], *id);
    }
  }
  return ids;
}

}  // namespace

AccountFacts account_facts(bool all_share, const std::optional<IdSpan>& subids,
                           const std::vector<std::string>& environment) {
  const auto text_in = [](const char* path) {
    const auto text = base::read_file(path);
    return text ? *text : std::string();
  };
  const auto program = [&](const char* name) {
    const auto found = base::find_program(name, environment);
    return found ? *found : std::string();
  };
  return {.all_share = all_share,
          .subids = subids,
          .is_root = ::geteuid() == 0,
          .uid = ::geteuid(),
          .user = user_name(),
          .subuid = text_in("/etc/subuid"),
          .subgid = text_in("/etc/subgid"),
          .uid_map = text_in("/proc/self/uid_map"),
          .gid_map = text_in("/proc/self/gid_map"),
          .has_user_namespaces = !text_in("/proc/sys/user/max_user_namespaces").starts_with("0\n"),
          .accounts = known_ids(),
          .newuidmap = program("newuidmap"),
          .newgidmap = program("newgidmap")};
}

Result<AccountSource> source_of(const AccountFacts& facts) {
  if (facts.all_share) {
    return no_accounts("tasks.accounts is shared", "set tasks.accounts: auto");
  }
  return facts.is_root ? source_of_root(facts) : source_of_ordinary_account(facts);
}

// Unix accounts.

namespace {

constexpr size_t kLongestEntry = 64 << 10;

struct FoundAccount {
  passwd entry{};
  std::vector<char> buffer = std::vector<char>(kLongestEntry);
};

std::optional<FoundAccount> account_named(const std::string& name) {
  FoundAccount found;
  passwd* answer = nullptr;
  const int failed =
      ::getpwnam_r(name.c_str(), &found.entry, found.buffer.data(), found.buffer.size(), &answer);
  if (failed != 0 || answer == nullptr) return std::nullopt;
  return found;
}

std::vector<uint32_t> groups_of_account(const std::string& name, gid_t own) {
  int count = 64;
  std::vector<gid_t> groups(static_cast<size_t>(count));
  if (::getgrouplist(name.c_str(), own, groups.data(), &count) < 0) {
    groups.resize(static_cast<size_t>(count));
    ::getgrouplist(name.c_str(), own, groups.data(), &count);
  }
  groups.resize(static_cast<size_t>(std::max(count, 0)));
  return {groups.begin(), groups.end()};
}

}  // namespace

std::vector<Fault> account_faults(const std::string& account, uint32_t server_uid) {
  std::vector<Fault> faults;
  const auto add = [&](std::string what) {
    faults.push_back({.field = "account", .what = std::move(what)});
  };
  const auto found = account_named(account);
  if (server_uid != 0 && found && found->entry.pw_uid == server_uid) {
    add(single_quoted(account) +
        " is the account of the server, under which no user's jobs may run: "
        "tasks.accounts: shared runs the jobs of all users under it");
    return faults;
  }
  if (server_uid != 0) {
    add("cannot be used: the server does not run as root, so that it cannot run jobs under other "
        "accounts");
  }
  if (!found) {
    add("there is no account " + single_quoted(account) + " on the server's machine");
    return faults;
  }
  if (found->entry.pw_uid == 0) {
    add(single_quoted(account) + " is root, and jobs may not run as root");
  }
  if (found->entry.pw_gid == 0) add(single_quoted(account) + " is in the group of root");
  return faults;
}

Result<UnixAccount> find_unix_account(const std::string& name) {
  const auto found = account_named(name);
  // It may have been changed since account_faults() accepted it.
  if (!found || found->entry.pw_uid == 0 || found->entry.pw_gid == 0) {
    return Error{
        .code = ErrorCode::kNotFound,
        .what = "the jobs of this user cannot run: the Unix account " + single_quoted(name) +
                (found ? " is root or is in its group" : " does not exist"),
        .advice = "create the account, or name another: muster user set USER --account NAME"};
  }
  return UnixAccount{.uid = found->entry.pw_uid,
                     .gid = found->entry.pw_gid,
                     .groups = groups_of_account(name, found->entry.pw_gid),
                     .home = found->entry.pw_dir};
}

Result<AssignedAccount> assign_account(const AccountSource& source, const launch::TaskPlan& plan,
                                       uint32_t inside_uid, uint32_t inside_gid) {
  IdBook book(source.book);
  const auto range_of = [&](const std::string& name) -> Result<IdRange> {
    auto range = book.range_of(name, source.uids, source.gids, source.count);
    if (range || range.error().code != ErrorCode::kExhausted) return range;
    Error error = std::move(range).error();
    error.what += " (" + source.place + ")";
    error.advice = source.advice;
    return error;
  };
  MUSTER_TRY(const IdRange server, range_of(IdBook::kServer));
  AssignedAccount assigned{
      .account = {}, .is_unix_account = false, .storage_gid = server.gid, .home = {}};
  TaskAccount& account = assigned.account;
  if (source.is_root && !plan.unix_account.empty()) {
    MUSTER_TRY(UnixAccount found, find_unix_account(plan.unix_account));
    account = {.uid = found.uid,
               .gid = found.gid,
               .inside_uid = found.uid,
               .inside_gid = found.gid,
               .groups = std::move(found.groups)};
    // The group of root has access to files that are closed to all others.
    std::erase(account.groups, 0U);
    account.groups.push_back(server.gid);
    if (source.counts_apart) account.uids = account.gids = {{0, 0, kAllIds.count}};
    assigned.is_unix_account = true;
    assigned.home = std::move(found.home);
    return assigned;
  }
  MUSTER_TRY(const IdRange range,
             range_of(source.are_of_projects ? "project:" + plan.project : plan.owner));
  account = {.uid = range.uid,
             .gid = range.gid,
             .inside_uid = inside_uid,
             .inside_gid = inside_gid,
             .groups = {server.gid},
             .uids = {{.inside = inside_uid, .outside = range.uid, .count = range.count}},
             .gids = {{.inside = inside_gid, .outside = range.gid, .count = range.count},
                      {.inside = server.gid, .outside = server.gid, .count = 1}}};
  return assigned;
}

HandedFiles handed_files(const AssignedAccount& assigned, const AccountSource& source,
                         const launch::TaskPlan& plan, const VolumeFolders& volumes,
                         const TaskFolder& folder, const fs::path& home) {
  HandedFiles files{.own = {folder.generated().string(), folder.shadow().string()},
                    .shared = {},
                    .shared_gid = assigned.storage_gid,
                    .collected = {},
                    .is_read_by_group = !source.is_root};
  for (size_t i = 0; i < plan.volumes.size(); ++i) {
    const job::Volume& volume = plan.volumes[i];
    if (volume.kind == job::Volume::Kind::kTree) {
      files.own.push_back(volumes.tree(i).string());
    } else if (volume.kind == job::Volume::Kind::kArtifacts) {
      files.own.push_back(volumes.artifacts().string());
      files.collected.push_back(volumes.artifacts().string());
    } else if (volume.kind == job::Volume::Kind::kStorage) {
      files.shared.push_back((volumes.storage / plan.project / volume.source).string());
    }
  }
  if (home.empty()) return files;
  // Users with Unix accounts of their own share the home of a project.
  const bool is_shared_home = source.are_of_projects && assigned.is_unix_account;
  (is_shared_home ? files.shared : files.own).push_back(home.string());
  return files;
}

}  // namespace muster::engine
