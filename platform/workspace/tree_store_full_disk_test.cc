// The store on a full disk: a small file system in memory, in a mount namespace of a child process.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <functional>
#include <string>

#include "base/files.h"
#include "base/test_folder.h"
#include "workspace/path_text.h"
#include "workspace/tree_store.h"

namespace muster::workspace {

namespace fs = std::filesystem;

namespace {

/// A user and a group id in the first user namespace.
struct Owner {
  uid_t user = 0;
  gid_t group = 0;
};

/// Mounts a file system of 3.4 MiB at `at`. The caller is in its own user and mount namespaces,
/// whose id maps are not set yet.
bool mount_small_disk(const fs::path& at, const Owner& owner) {
  std::ofstream("/proc/self/setgroups") << "deny";
  std::ofstream("/proc/self/uid_map") << owner.user << " " << owner.user << " 1";
  std::ofstream("/proc/self/gid_map") << owner.group << " " << owner.group << " 1";
  return ::mount("none", at.c_str(), "tmpfs", 0, "size=3500k,mode=700") == 0;
}

/// The result of `use` in a process with 3.4 MiB of space under `disk`.
///
/// The child is created by clone(2) itself, in its namespaces from the start: fork() starts a
/// thread of the thread sanitizer in the child, and a process with two threads may not enter a user
/// namespace.
std::string on_a_small_disk(const fs::path& disk, const std::function<std::string()>& use) {
  const fs::path result = disk.string() + ".result";
  fs::create_directory(disk);
  const Owner owner{.user = ::geteuid(), .group = ::getegid()};
  const long child = ::syscall(SYS_clone, CLONE_NEWUSER | CLONE_NEWNS | SIGCHLD, nullptr, nullptr,
                               nullptr, nullptr);
  if (child == 0) {
    const std::string text = mount_small_disk(disk, owner) ? use() : "no small disk";
    ::_exit(base::write_file(result, text) ? 0 : 1);
  }
  int status = -1;
  EXPECT_EQ(::waitpid(static_cast<pid_t>(child), &status, 0), child);
  EXPECT_EQ(status, 0);
  return base::read_file(result).ok() ? *base::read_file(result) : "no result";
}

size_t files_in(const fs::path& folder) {
  size_t count = 0;
  for (const auto& item : fs::recursive_directory_iterator(folder)) {
    count += item.is_regular_file() && item.path().filename() != ".lock" ? 1 : 0;
  }
  return count;
}

std::string chunk_of(char letter) {
  return std::string(kChunkBytes, letter);
}

TEST(FullDisk, LeavesNoPartOfAChunk) {
  const base::TestFolder work;
  const fs::path disk = work / "disk";

  const std::string result = on_a_small_disk(disk, [&] {
    TreeStore store(disk / "trees");
    std::string text;
    char letter = 'a';
    while (letter < 'h') {
      const auto put = store.put_chunk("team", chunk_of(letter++));
      if (put) continue;
      text = std::string(to_string(put.error().code)) + ": " + put.error().to_string() + "; ";
      break;
    }
    text += std::to_string(files_in(disk)) + " files; ";
    const auto again = store.put_chunk("team", chunk_of('a'));
    return text + (again ? "the stored chunks stay" : "the stored chunks are gone");
  });

  const ChunkId fourth = chunk_id(chunk_of('d'));
  EXPECT_EQ(result, "exhausted: cannot write '" + (disk / "trees/team/chunks").string() + "/" +
                        fourth.substr(0, 2) + "/" + fourth +
                        "': No space left on device\n"
                        "  free space on that disk, then try again: no stored file is lost; 3 "
                        "files; the stored chunks stay");
}

TEST(FullDisk, KeepsAPartOfTheDiskForTheServer) {
  const base::TestFolder work;
  const fs::path disk = work / "disk";

  const std::string result = on_a_small_disk(disk, [&] {
    TreeStore store(disk / "trees");
    std::string text;
    for (char letter = '!'; text.empty() && letter < '~'; ++letter) {
      const auto put = store.put_chunk("team", std::string(64 << 10, letter));
      if (!put) text = put.error().to_string();
    }
    // How much is free depends on what the file system keeps for itself.
    struct statvfs left{};
    ::statvfs(disk.c_str(), &left);
    const std::string free = size_text(static_cast<int64_t>(left.f_bavail * left.f_frsize));
    if (const size_t at = text.find(free); at != std::string::npos) {
      text.replace(at, free.size(), "FREE");
    }
    const auto written = base::write_file(disk / "state", std::string(64 << 10, 'x'));
    return text + (written ? "; the server can write" : "; the server cannot write");
  });

  EXPECT_EQ(result, "cannot store files in '" + (disk / "trees").string() +
                        "': its disk has FREE free, and the server keeps the last 175 KiB\n"
                        "  free space on that disk, then try again: no stored file is lost; the "
                        "server can write");
}

TEST(FullDisk, EndsTheUnpackingOfATreeWhichStaysInTheStore) {
  const base::TestFolder work;
  const fs::path disk = work / "disk";
  TreeStore store(work / "trees");
  Manifest tree;
  for (const char letter : {'a', 'b', 'c', 'd'}) {
    const auto chunk = store.put_chunk("team", chunk_of(letter));
    ASSERT_TRUE(chunk);
    tree.entries.push_back(
        {.path = std::string(1, letter), .bytes = kChunkBytes, .chunks = {*chunk}});
  }
  const std::string encoded = encode(tree);
  ASSERT_TRUE(store.put_chunk("team", encoded));
  ASSERT_TRUE(store.keep("team", tree_id(encoded), {chunk_id(encoded)}));

  const std::string result = on_a_small_disk(disk, [&] {
    const auto unpacked = store.unpack("team", tree_id(encoded), disk);
    if (unpacked) return std::string("unpacked");
    return std::string(to_string(unpacked.error().code)) + ": " + unpacked.error().what;
  });

  EXPECT_EQ(result, "exhausted: cannot write 'd' of the workspace: No space left on device");
  EXPECT_TRUE(store.info("team", tree_id(encoded)));
}

}  // namespace
}  // namespace muster::workspace
