// The store on a disk that is full: a small file system in memory, in a mount namespace that only
// the child has in which the test's words are spoken.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <string>

#include "base/files.h"
#include "base/test_folder.h"
#include "workspace/tree_store.h"

namespace muster::workspace {

namespace fs = std::filesystem;

namespace {

bool make_small_disk(const fs::path& at) {
  const uid_t user = ::geteuid();
  const gid_t group = ::getegid();
  if (::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return false;
  std::ofstream("/proc/self/setgroups") << "deny";
  std::ofstream("/proc/self/uid_map") << user << " " << user << " 1";
  std::ofstream("/proc/self/gid_map") << group << " " << group << " 1";
  return ::mount("none", at.c_str(), "tmpfs", 0, "size=3500k,mode=700") == 0;
}

/// What `speak` says in a process that has 3.4 MiB of room under `disk`.
std::string on_a_small_disk(const fs::path& disk, const std::function<std::string()>& speak) {
  const fs::path said = disk.string() + ".said";
  fs::create_directory(disk);
  const pid_t child = ::fork();
  if (child == 0) {
    const std::string words = make_small_disk(disk) ? speak() : "there is no small disk";
    ::_exit(base::write_file(said, words) ? 0 : 1);
  }
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  return base::read_file(said).ok() ? *base::read_file(said) : "nothing";
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

TEST(FullDisk, IsSaidInASentenceAndLeavesNoHalfOfAChunk) {
  const base::TestFolder work;
  const fs::path disk = work / "disk";

  const std::string said = on_a_small_disk(disk, [&] {
    TreeStore store(disk / "trees");
    std::string words;
    char letter = 'a';
    while (letter < 'h') {
      const auto put = store.put_chunk("team", chunk_of(letter++));
      if (put) continue;
      words = std::string(to_string(put.error().code)) + ": " + put.error().to_string() + "; ";
      break;
    }
    words += std::to_string(files_in(disk)) + " files; ";
    const auto again = store.put_chunk("team", chunk_of('a'));
    return words + (again ? "what was there stays" : "what was there is gone");
  });

  const ChunkId fourth = chunk_id(chunk_of('d'));
  EXPECT_EQ(said, "exhausted: cannot write '" + (disk / "trees/team/chunks").string() + "/" +
                      fourth.substr(0, 2) + "/" + fourth +
                      "': No space left on device\n  free some space on that disk, then try again: "
                      "no stored file is lost; 3 files; what was there stays");
}

TEST(FullDisk, IsSaidWhereATreeIsUnpackedAndTheTreeStays) {
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

  const std::string said = on_a_small_disk(disk, [&] {
    const auto unpacked = store.unpack("team", tree_id(encoded), disk);
    if (unpacked) return std::string("there was room");
    return std::string(to_string(unpacked.error().code)) + ": " + unpacked.error().what;
  });

  EXPECT_EQ(said, "exhausted: cannot write 'd' of the workspace: No space left on device");
  EXPECT_TRUE(store.info("team", tree_id(encoded)));
}

}  // namespace
}  // namespace muster::workspace
