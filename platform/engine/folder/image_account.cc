#include "engine/folder/image_account.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "base/units.h"

namespace muster::engine {

using base::Error;
using base::ErrorCode;
using base::Result;
using launch::Account;

namespace {

struct Group {
  std::string name;
  gid_t gid = 0;
};

// Both files contain lines with fields between colons. Other lines are skipped, as libc does.

std::optional<Account> account_of_line(const std::vector<std::string>& fields) {
  if (fields.size() < 6 || fields[0].empty()) return std::nullopt;
  const auto uid = base::number_of<uid_t>(fields[2]);
  const auto gid = base::number_of<gid_t>(fields[3]);
  if (!uid || !gid) return std::nullopt;
  return Account{.uid = *uid,
                 .gid = *gid,
                 .name = fields[0],
                 .home = fields[5].starts_with('/') ? fields[5] : "/"};
}

std::optional<Group> group_of_line(const std::vector<std::string>& fields) {
  if (fields.size() < 3 || fields[0].empty()) return std::nullopt;
  const auto gid = base::number_of<gid_t>(fields[2]);
  if (!gid) return std::nullopt;
  return Group{.name = fields[0], .gid = *gid};
}

template <class Entry>
std::vector<Entry> read_entries(std::string_view text,
                                std::optional<Entry> (*read)(const std::vector<std::string>&)) {
  std::vector<Entry> entries;
  for (const std::string& line : base::split(text, '\n')) {
    if (auto entry = read(base::split(line, ':'))) entries.push_back(*std::move(entry));
  }
  return entries;
}

template <class Entry>
const Entry* first(const std::vector<Entry>& entries,
                   const std::function<bool(const Entry&)>& fits) {
  const auto found = std::find_if(entries.begin(), entries.end(), fits);
  return found == entries.end() ? nullptr : &*found;
}

/// "the image has root, daemon, ..."
template <class Entry>
std::string names_of(const std::vector<Entry>& entries) {
  constexpr size_t kMost = 30;
  if (entries.empty()) return "it lists no names: give a number";
  std::string text = "the image has ";
  for (size_t i = 0; i < entries.size() && i < kMost; ++i) {
    text += (i == 0 ? "" : ", ") + entries[i].name;
  }
  return text + (entries.size() > kMost ? " and more" : "");
}

template <class Entry>
Error unknown(const std::string& what, const std::string& name, const std::vector<Entry>& entries) {
  std::vector<std::string> names;
  for (const Entry& entry : entries) names.push_back(entry.name);
  const std::string meant = base::nearest(name, names);
  return {.code = ErrorCode::kInvalid,
          .what = "the image has no " + what + " '" + name + "'",
          .advice = meant.empty() ? names_of(entries) : "did you mean '" + meant + "'?",
          .faults = {}};
}

Result<Account> find_user(const std::string& user, std::string_view passwd) {
  const auto accounts = read_entries<Account>(passwd, account_of_line);
  const auto number = base::number_of<uid_t>(user);
  // A name goes before a number, as engines have it: a user may be called "1000".
  const auto* found =
      first<Account>(accounts, [&](const Account& account) { return account.name == user; });
  if (found == nullptr && number) {
    found =
        first<Account>(accounts, [&](const Account& account) { return account.uid == *number; });
  }
  if (found != nullptr) return *found;
  if (!number) return unknown("user", user, accounts);
  // Without a line in the files: even root may have none.
  return Account{.uid = *number, .gid = 0, .name = "", .home = "/"};
}

Result<gid_t> find_group(const std::string& name, std::string_view group) {
  const auto groups = read_entries<Group>(group, group_of_line);
  const auto* const found =
      first<Group>(groups, [&](const Group& entry) { return entry.name == name; });
  if (found != nullptr) return found->gid;
  if (const auto number = base::number_of<gid_t>(name)) return *number;
  return unknown("group", name, groups);
}

}  // namespace

Result<Account> find_account(std::string_view user, std::string_view passwd,
                             std::string_view group) {
  const size_t colon = std::min(user.find(':'), user.size());
  const std::string user_part(user.substr(0, colon));
  const std::string group_part(user.substr(std::min(colon + 1, user.size())));
  const bool is_whole =
      user.empty() || (!user_part.empty() && (colon == user.size() || !group_part.empty()));
  if (!is_whole || group_part.find(':') != std::string::npos) {
    return Error{.code = ErrorCode::kInvalid,
                 .what = "'" + std::string(user) + "' is not a valid user",
                 .advice = "give NAME, NAME:GROUP or their numbers",
                 .faults = {}};
  }
  MUSTER_TRY(Account account, find_user(user_part.empty() ? "0" : user_part, passwd));
  if (!group_part.empty()) {
    MUSTER_TRY(account.gid, find_group(group_part, group));
  }
  return account;
}

}  // namespace muster::engine
