#include "workspace/left_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <utility>

#include "base/random.h"
#include "workspace/beneath.h"
#include "workspace/manifest.h"
#include "workspace/path_text.h"

namespace muster::workspace {

using base::Error;
using base::ErrorCode;
using base::Result;
using base::UniqueFd;

namespace {

constexpr size_t kSummedPiece = 256 << 10;

LeftFile::Kind file_kind(mode_t mode) {
  if (S_ISREG(mode)) return LeftFile::Kind::kFile;
  if (S_ISLNK(mode)) return LeftFile::Kind::kLink;
  if (S_ISDIR(mode)) return LeftFile::Kind::kFolder;
  if (S_ISFIFO(mode)) return LeftFile::Kind::kPipe;
  return S_ISSOCK(mode) ? LeftFile::Kind::kSocket : LeftFile::Kind::kDevice;
}

/// A job may set any time of the kernel's, also one that is no base::Time: then the nearest one.
base::Time modified_at(const struct stat& status) {
  using std::chrono::seconds;
  constexpr auto kFirst = std::chrono::ceil<seconds>(base::Time::min());
  constexpr auto kLast = std::chrono::floor<seconds>(base::Time::max());
  const std::chrono::sys_time<seconds> second{seconds(status.st_mtim.tv_sec)};
  if (second < kFirst) return base::Time::min();
  if (second >= kLast) return base::Time::max();
  return base::Time(std::chrono::seconds(status.st_mtim.tv_sec) +
                    std::chrono::nanoseconds(status.st_mtim.tv_nsec));
}

bool begins_alike(std::string_view one, std::string_view other) {
  const size_t length = std::min(one.size(), other.size());
  return one.substr(0, length) == other.substr(0, length);
}

class Lister {
 public:
  explicit Lister(const LookFor& query) : query_(query) {}

  /// `here`: the path of the folder with a '/', or empty. False: the folder cannot be read.
  bool list(UniqueFd fd, const std::string& here, size_t depth) {
    const OpenFolder folder(::fdopendir(fd.get()));
    if (folder == nullptr) return false;
    fd.release();
    for (LeftFile& found : entries_of(folder.get(), here)) {
      if (full()) return true;
      found.path.insert(0, here);
      if (found.kind == LeftFile::Kind::kFolder) {
        if (look_into(::dirfd(folder.get()), found, depth)) continue;
        // With the '/', so that it sorts where its content would be.
        found.path += '/';
      }
      take(found);
    }
    return true;
  }

  LeftFiles take_all() && { return std::move(all_); }

 private:
  /// Whether the listing has reached its limit.
  bool full() const { return !all_.whole; }

  /// Names without paths, to save memory in deep folders with many files. Sorted in the order of
  /// their paths: "a.b" is before the content of "a", which is "a/...".
  std::vector<LeftFile> entries_of(DIR* folder, const std::string& here) {
    constexpr size_t kCostOfMatch = 10;
    std::vector<LeftFile> found;
    while (const dirent* const item = ::readdir(folder)) {
      const std::string name = item->d_name;
      if (name == "." || name == "..") continue;
      const bool may_match = begins_alike(here + name, query_.prefix);
      cost_ += may_match ? kCostOfMatch : 1;
      if (cost_ > kCostOfMatch * query_.most_entries) {
        all_.whole = false;
        break;
      }
      if (!may_match) continue;
      if (auto file = look_at(::dirfd(folder), name)) found.push_back(*std::move(file));
    }
    const auto key = [](const LeftFile& file) {
      return file.path + (file.kind == LeftFile::Kind::kFolder ? "/" : "");
    };
    std::sort(found.begin(), found.end(),
              [&](const LeftFile& one, const LeftFile& other) { return key(one) < key(other); });
    return found;
  }

  static std::optional<LeftFile> look_at(int folder, const std::string& name) {
    struct stat status{};
    if (::fstatat(folder, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) return std::nullopt;
    LeftFile file{.path = name,
                  .kind = file_kind(status.st_mode),
                  .modified = modified_at(status),
                  .state = FileState(status)};
    if (file.kind == LeftFile::Kind::kFile) file.bytes = status.st_size;
    return file;
  }

  /// True: the folder need not be listed itself.
  bool look_into(int folder, const LeftFile& found, size_t depth) {
    const std::string below = found.path + "/";
    if (!begins_alike(below, query_.prefix)) return true;
    const bool all_before = query_.after >= below && !query_.after.starts_with(below);
    if (all_before) return true;
    if (depth == kMostDepth || below.size() > kMostPathBytes) return false;
    UniqueFd inner(::openat(folder, name_of(found.path).c_str(),
                            O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    return inner && list(std::move(inner), below, depth + 1);
  }

  void take(const LeftFile& file) {
    if (file.path <= query_.after || !file.path.starts_with(query_.prefix)) return;
    if (all_.files.size() == query_.most) {
      all_.whole = false;
      return;
    }
    all_.files.push_back(file);
  }

  const LookFor& query_;
  LeftFiles all_;
  size_t cost_ = 0;  ///< of the entries that were read
};

std::string_view words_of(LeftFile::Kind kind) {
  switch (kind) {
    case LeftFile::Kind::kFile:
      return "a file";
    case LeftFile::Kind::kLink:
      return "a link; links are not followed";
    case LeftFile::Kind::kFolder:
      return "a folder";
    case LeftFile::Kind::kPipe:
      return "a pipe";
    case LeftFile::Kind::kSocket:
      return "a socket";
    case LeftFile::Kind::kDevice:
      return "a device";
  }
  return "no file";
}

Error nothing_at(std::string_view path) {
  return {.code = ErrorCode::kNotFound, .what = "there is no file " + shown(path)};
}

Error not_a_file(std::string_view path, LeftFile::Kind kind) {
  return {.code = ErrorCode::kConflict, .what = shown(path) + " is " + std::string(words_of(kind))};
}

}  // namespace

Result<LeftFiles> list_left(const std::filesystem::path& folder, const LookFor& query) {
  auto root = open_root(folder);
  if (!root && root.error().code == ErrorCode::kNotFound) return LeftFiles{};
  if (!root) return root.error();
  Lister lister(query);
  if (!lister.list(*std::move(root), "", 0)) {
    return base::system_error("cannot read folder " + shown(folder.native()), errno);
  }
  return std::move(lister).take_all();
}

Result<OpenedFile> open_left(const std::filesystem::path& folder, std::string_view path) {
  if (!is_tree_path(path)) {
    return Error{.code = ErrorCode::kInvalid,
                 .what = shown(path.substr(0, kMostPathBytes)) + " is not a path within a folder",
                 .advice = "give a relative path from the list, without '.' and '..'"};
  }
  MUSTER_TRY(UniqueFd root, open_root(folder));
  Beneath beneath(std::move(root));
  const int parent = beneath.parent_of(path);
  if (parent < 0) return nothing_at(path);
  // Opened with O_PATH first, so that its kind is known, and fixed, before it is opened to read.
  const UniqueFd named(::openat(parent, name_of(path).c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  struct stat status{};
  if (!named || ::fstat(named.get(), &status) != 0) return nothing_at(path);
  if (!S_ISREG(status.st_mode)) return not_a_file(path, file_kind(status.st_mode));
  OpenedFile file;
  file.fd.reset(::open(("/proc/self/fd/" + std::to_string(named.get())).c_str(),
                       O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (!file.fd) return base::system_error("cannot read " + shown(path), errno);
  if (::fstat(file.fd.get(), &status) != 0) return nothing_at(path);
  file.state = FileState(status);
  file.modified = modified_at(status);
  return file;
}

Result<std::string> read_at(const UniqueFd& file, int64_t offset, size_t most) {
  std::string bytes(most, '\0');
  size_t taken = 0;
  while (taken < most) {
    const ssize_t count = ::pread(file.get(), bytes.data() + taken, most - taken,
                                  offset + static_cast<int64_t>(taken));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return base::system_error("cannot read the file", errno);
    if (count == 0) break;
    taken += static_cast<size_t>(count);
  }
  bytes.resize(taken);
  return bytes;
}

bool Summing::has_changed() const {
  struct stat status{};
  return ::fstat(file_.fd.get(), &status) != 0 || FileState(status) != file_.state;
}

bool Summing::go_on(size_t most) {
  for (size_t done = 0; done < most && !broken_;) {
    const auto left = static_cast<size_t>(file_.state.bytes - taken_);
    if (left == 0) return true;
    const auto piece = read_at(file_.fd, taken_, std::min(kSummedPiece, left));
    broken_ = !piece || piece->empty();
    if (broken_) break;
    sha_.put(*piece);
    taken_ += static_cast<int64_t>(piece->size());
    done += piece->size();
  }
  return broken_ || taken_ == file_.state.bytes;
}

std::optional<std::string> Summing::sum() {
  if (broken_ || has_changed()) return std::nullopt;
  return sha_.digest();
}

namespace {

// Fails only without memory or on a fault of the library. Aborting is better than a wrong checksum.
void check(bool done) {
  if (!done) std::abort();
}

}  // namespace

struct Sha256::State {
  struct FreeContext {
    void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
  };
  std::unique_ptr<EVP_MD_CTX, FreeContext> context{EVP_MD_CTX_new()};
};

Sha256::Sha256() : state_(std::make_unique<State>()) {
  check(EVP_DigestInit_ex(state_->context.get(), EVP_sha256(), nullptr) == 1);
}
Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

void Sha256::put(std::string_view bytes) {
  check(EVP_DigestUpdate(state_->context.get(), bytes.data(), bytes.size()) == 1);
}

std::string Sha256::digest() {
  std::array<uint8_t, 32> digest{};
  check(EVP_DigestFinal_ex(state_->context.get(), digest.data(), nullptr) == 1);
  return base::to_hex(digest);
}

}  // namespace muster::workspace
