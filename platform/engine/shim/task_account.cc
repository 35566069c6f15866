#include "engine/shim/task_account.h"

#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

#include "base/files.h"

namespace muster::engine {

using base::Error;
using base::ErrorCode;
using base::Result;
using base::UniqueFd;

namespace {

/// Each level holds a descriptor. What a server unpacks is far flatter.
constexpr int kDeepestGiven = 512;

struct CloseEntries {
  void operator()(DIR* folder) const { ::closedir(folder); }
};

/// u::rwx,g::rwx,o::--- as the kernel reads it: with it the umask of a program does not count.
constexpr std::array<uint8_t, 28> kGroupMayWrite{2,    0, 0, 0,                          //
                                                 1,    0, 7, 0, 0xff, 0xff, 0xff, 0xff,  //
                                                 4,    0, 7, 0, 0xff, 0xff, 0xff, 0xff,  //
                                                 0x20, 0, 0, 0, 0xff, 0xff, 0xff, 0xff};

class HandOver {
 public:
  HandOver(const NewOwner& owner, const struct stat& root)
      : owner_(owner), device_(root.st_dev), before_(root.st_uid), self_(::geteuid()) {}

  /// The content of `folder`, then the folder.
  Result<void> give_folder(UniqueFd folder, const struct stat& facts, int depth) {
    const int fd = folder.get();
    const std::unique_ptr<DIR, CloseEntries> entries(::fdopendir(folder.get()));
    if (entries == nullptr) return base::system_error("cannot list a folder of the job", errno);
    folder.release();
    while (const dirent* const entry = ::readdir(entries.get())) {
      const std::string_view name = entry->d_name;
      if (name != "." && name != "..") MUSTER_CHECK(give_entry(fd, entry->d_name, depth));
    }
    return change_folder(fd, facts);
  }

  Result<void> give_file(int parent, const char* name, const struct stat& facts) const {
    const bool is_plain = S_ISREG(facts.st_mode);
    if (is_plain && owner_.more_for_files != 0) add_to_file(parent, name);
    if (::fchownat(parent, name, owner_.uid.value_or(facts.st_uid), owner_.gid,
                   AT_SYMLINK_NOFOLLOW) == 0 ||
        errno == ENOENT) {
      return {};
    }
    return base::system_error(std::string("cannot give the file '") + name + "' to the job", errno);
  }

 private:
  bool is_for_us(uint32_t uid) const {
    return uid == self_ || uid == before_ || uid == owner_.uid.value_or(before_);
  }

  Result<void> give_entry(int parent, const char* name, int depth) {
    struct stat facts{};
    if (::fstatat(parent, name, &facts, AT_SYMLINK_NOFOLLOW) != 0) return {};
    if (facts.st_dev != device_ || !is_for_us(facts.st_uid)) return {};
    if (!S_ISDIR(facts.st_mode)) return give_file(parent, name, facts);
    if (depth == kDeepestGiven) {
      return Error{.code = ErrorCode::kExhausted, .what = "the folders of the job are too deep"};
    }
    UniqueFd folder(::openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!folder || ::fstat(folder.get(), &facts) != 0 || facts.st_dev != device_) return {};
    return give_folder(std::move(folder), facts, depth + 1);
  }

  Result<void> change_folder(int folder, const struct stat& facts) const {
    if (owner_.is_for_all) {
      // Where the file system has no lists of rights, the umask of programs counts.
      ::fsetxattr(folder, "system.posix_acl_default", kGroupMayWrite.data(), kGroupMayWrite.size(),
                  0);
    }
    const mode_t mode = (facts.st_mode & 07777) | owner_.more_for_folders;
    if (::fchown(folder, owner_.uid.value_or(facts.st_uid), owner_.gid) != 0 ||
        ::fchmod(folder, mode) != 0) {
      return base::system_error("cannot give a folder to the job", errno);
    }
    return {};
  }

  void add_to_file(int parent, const char* name) const {
    const UniqueFd file(
        ::openat(parent, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
    struct stat facts{};
    if (!file || ::fstat(file.get(), &facts) != 0 || !S_ISREG(facts.st_mode)) return;
    // Not of a file that has other names: these may be in other folders.
    if (facts.st_nlink > 1 || !is_for_us(facts.st_uid)) return;
    ::fchmod(file.get(), (facts.st_mode & 07777) | owner_.more_for_files);
  }

  const NewOwner& owner_;
  dev_t device_;
  uint32_t before_;  ///< the owner of the root
  uint32_t self_;
};

Result<void> write_id_map(pid_t process, const char* file, const std::vector<IdMapping>& mappings) {
  std::string text;
  for (const IdMapping& line : mappings) {
    text += std::to_string(line.inside) + " " + std::to_string(line.outside) + " " +
            std::to_string(line.count) + "\n";
  }
  const std::string path = "/proc/" + std::to_string(process) + "/" + file;
  const UniqueFd opened(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  // The kernel takes a map in one write, and only once.
  if (opened &&
      ::write(opened.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size())) {
    return {};
  }
  return base::system_error("cannot map the ids of the task's user", errno);
}

/// Those that sshd and package managers need. In the namespace of the task they reach nothing else.
constexpr std::array<int, 11> kRightsOfItsRoot{
    CAP_CHOWN,  CAP_DAC_OVERRIDE, CAP_FOWNER,           CAP_FSETID,     CAP_KILL,   CAP_SETGID,
    CAP_SETUID, CAP_SETPCAP,      CAP_NET_BIND_SERVICE, CAP_SYS_CHROOT, CAP_SETFCAP};

uint64_t kept_rights(const TaskAccount& account) {
  uint64_t rights = 0;
  if (!account.has_namespace() || account.inside_uid != 0) return rights;
  for (const int right : kRightsOfItsRoot) rights |= uint64_t{1} << right;
  return rights;
}

void bound_rights(uint64_t kept) {
  for (int right = 0; ::prctl(PR_CAPBSET_READ, right, 0, 0, 0) >= 0; ++right) {
    if ((kept >> right & 1) == 0) ::prctl(PR_CAPBSET_DROP, right, 0, 0, 0);
  }
}

Result<void> set_rights(uint64_t kept) {
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  std::array<__user_cap_data_struct, 2> data{};
  for (size_t i = 0; i < data.size(); ++i) {
    data[i].effective = data[i].permitted = static_cast<uint32_t>(kept >> (32 * i));
  }
  if (::syscall(SYS_capset, &header, data.data()) == 0) return {};
  return base::system_error("cannot drop the rights of root", errno);
}

}  // namespace

Result<void> hand_over(const std::string& path, const NewOwner& owner) {
  struct stat facts{};
  if (::lstat(path.c_str(), &facts) != 0) {
    if (errno == ENOENT) return {};
    return base::system_error("cannot look at '" + path + "'", errno);
  }
  if (S_ISLNK(facts.st_mode)) {
    return Error{.code = ErrorCode::kRefused,
                 .what = "'" + path + "' is a link, and cannot be given to a job"};
  }
  HandOver hand_over(owner, facts);
  if (!S_ISDIR(facts.st_mode)) return hand_over.give_file(AT_FDCWD, path.c_str(), facts);
  UniqueFd folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!folder || ::fstat(folder.get(), &facts) != 0) {
    return base::system_error("cannot open '" + path + "'", errno);
  }
  const bool is_done = facts.st_uid == owner.uid.value_or(facts.st_uid) &&
                       facts.st_gid == owner.gid &&
                       (facts.st_mode & owner.more_for_folders) == owner.more_for_folders;
  if (is_done) return {};
  return hand_over.give_folder(std::move(folder), facts, 0);
}

Result<void> hand_over(const HandedFiles& files, const TaskAccount& account) {
  constexpr mode_t kReadByGroup = S_ISGID | 0050;
  constexpr mode_t kWrittenByGroup = S_ISGID | 0070;
  const NewOwner user{.uid = account.uid,
                      .gid = files.is_read_by_group ? ::getegid() : account.gid,
                      .more_for_folders = files.is_read_by_group ? kReadByGroup : mode_t{0}};
  for (const std::string& path : files.own) MUSTER_CHECK(hand_over(path, user));
  for (const std::string& path : files.shared) {
    MUSTER_CHECK(hand_over(path, {.uid = std::nullopt,
                                  .gid = files.shared_gid,
                                  .more_for_folders = kWrittenByGroup,
                                  .more_for_files = 0060,
                                  .is_for_all = true}));
  }
  return {};
}

void let_the_server_collect(const HandedFiles& files, const std::string& generated) {
  if (!files.is_read_by_group) return;
  // Errors leave files that are unreadable for the server, which reports them.
  [[maybe_unused]] auto given =
      hand_over(generated, {.uid = ::geteuid(), .gid = ::getegid(), .more_for_folders = 0700});
  for (const std::string& path : files.collected) {
    struct stat facts{};
    UniqueFd folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!folder || ::fstat(folder.get(), &facts) != 0) continue;
    const NewOwner readable{.uid = std::nullopt,
                            .gid = ::getegid(),
                            .more_for_folders = S_ISGID | 0050,
                            .more_for_files = 0040};
    given = HandOver(readable, facts).give_folder(std::move(folder), facts, 0);
  }
}

Result<void> map_ids(pid_t inner, const TaskAccount& account) {
  MUSTER_CHECK(write_id_map(inner, "uid_map", account.uids));
  return write_id_map(inner, "gid_map", account.gids);
}

Result<void> make_own_places(const TaskAccount& account) {
  const std::string owner =
      ",uid=" + std::to_string(account.uid) + ",gid=" + std::to_string(account.gid);
  struct stat folder{};
  // An sshd of root refuses a folder that is not root's.
  const bool needs_folder = account.inside_uid == 0 && ::stat("/run/sshd", &folder) == 0;
  if (needs_folder && ::mount("tmpfs", "/run/sshd", "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC,
                              ("mode=0755,size=4k" + owner).c_str()) != 0) {
    return base::system_error("cannot make /run/sshd for the task", errno);
  }
  const std::string options = "newinstance,ptmxmode=0666,mode=0620" + owner;
  if (::mount("devpts", "/dev/pts", "devpts", MS_NOSUID | MS_NOEXEC, options.c_str()) != 0) {
    return base::system_error("cannot make terminals for the task", errno);
  }
  // In some sandboxes it is a link to there already.
  struct stat facts{};
  if (::lstat("/dev/ptmx", &facts) == 0 && S_ISLNK(facts.st_mode)) return {};
  if (::mount("/dev/pts/ptmx", "/dev/ptmx", nullptr, MS_BIND, nullptr) == 0) return {};
  return base::system_error("cannot make terminals for the task", errno);
}

Result<void> make_own_users(int control) {
  if (::unshare(CLONE_NEWUSER) != 0) {
    return base::system_error("cannot make a user namespace for the task", errno);
  }
  std::array<char, 512> answer{};
  if (::send(control, kNeedsIds.data(), kNeedsIds.size(), MSG_NOSIGNAL) < 0) {
    return base::system_error("cannot ask for the ids of the task", errno);
  }
  const ssize_t count = ::recv(control, answer.data(), answer.size(), 0);
  const std::string_view text(answer.data(), static_cast<size_t>(std::max<ssize_t>(count, 0)));
  if (text == kHasIds) return {};
  return Error{.code = ErrorCode::kRefused,
               .what = text.empty() ? "the task was ended at its start" : std::string(text)};
}

Result<void> take_ids(const TaskAccount& account) {
  const uint64_t kept = kept_rights(account);
  bound_rights(kept);
  std::vector<gid_t> groups(account.groups.begin(), account.groups.end());
  if (::setgroups(groups.size(), groups.data()) != 0 ||
      ::setresgid(account.inside_gid, account.inside_gid, account.inside_gid) != 0 ||
      ::setresuid(account.inside_uid, account.inside_uid, account.inside_uid) != 0) {
    return base::system_error("cannot take the ids of the task's user", errno);
  }
  MUSTER_CHECK(set_rights(kept));
  // Programs of the task neither trace this process nor read what it was started with.
  ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  return {};
}

Result<void> send_terminal(int control, const UniqueFd& terminal) {
  std::string text(kTerminal);
  const int descriptor = terminal.get();
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof descriptor)> space{};
  iovec part{.iov_base = text.data(), .iov_len = text.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = space.data();
  message.msg_controllen = space.size();
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof descriptor);
  std::memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
  if (::sendmsg(control, &message, MSG_NOSIGNAL) >= 0) return {};
  return base::system_error("cannot hand over the terminal of the task", errno);
}

}  // namespace muster::engine
