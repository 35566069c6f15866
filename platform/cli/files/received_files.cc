#include "cli/files/received_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/files.h"
#include "workspace/beneath.h"
#include "workspace/left_files.h"
#include "workspace/manifest.h"
#include "workspace/path_text.h"

namespace muster::cli::files {

using base::Error;
using base::ErrorCode;
using base::UniqueFd;

namespace {

constexpr int kFolder = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
constexpr size_t kHashedPieceBytes = 256 << 10;

Error in_the_way(const std::string& path, int number) {
  Error error = base::system_error("cannot write " + workspace::shown(path), number);
  if (number == ELOOP || number == ENOTDIR || number == EISDIR || number == EEXIST) {
    error.code = ErrorCode::kConflict;
    error.advice = "something of that name is in its way; choose another folder with --to";
  }
  return error;
}

/// The folder that `path` lies in, made with those above it.
Result<UniqueFd> make_parent(int root, const std::string& path) {
  UniqueFd at(::openat(root, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  size_t begin = 0;
  for (size_t slash = path.find('/'); at && slash != std::string::npos;
       slash = path.find('/', begin)) {
    const std::string name = path.substr(begin, slash - begin);
    if (::mkdirat(at.get(), name.c_str(), 0777) != 0 && errno != EEXIST) break;
    UniqueFd inner(::openat(at.get(), name.c_str(), kFolder));
    if (!inner) return in_the_way(path, errno);
    at = std::move(inner);
    begin = slash + 1;
  }
  if (!at || path.find('/', begin) != std::string::npos) return in_the_way(path, errno);
  return at;
}

/// Of a file and its content: what comes later under the same name goes on with it, and with no
/// other.
std::string part_name(const ExpectedFile& file) {
  constexpr size_t kDigits = 32;
  return ".muster-part-" + workspace::chunk_id(file.path + '\n' + file.sha256).substr(0, kDigits);
}

/// Takes what is there into the sum; how much that is.
Result<int64_t> sum_up(const UniqueFd& file, workspace::Sha256& sha) {
  int64_t bytes = 0;
  while (true) {
    MUSTER_TRY(const std::string piece, workspace::read_at(file, bytes, kHashedPieceBytes));
    if (piece.empty()) return bytes;
    sha.put(piece);
    bytes += static_cast<int64_t>(piece.size());
  }
}

timespec as_timespec(base::Time time) {
  const auto since = time.time_since_epoch();
  const auto whole = std::chrono::floor<std::chrono::seconds>(since);
  return {.tv_sec = whole.count(), .tv_nsec = (since - whole).count()};
}

}  // namespace

Result<ReceivedFiles> ReceivedFiles::open(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) {
    return base::system_error("cannot make folder " + workspace::shown(folder.native()),
                              error.value());
  }
  MUSTER_TRY(UniqueFd root, workspace::open_root(folder));
  return ReceivedFiles(std::move(root));
}

bool ReceivedFiles::has(const ExpectedFile& file) const {
  if (file.sha256.empty() || !workspace::is_tree_path(file.path)) return false;
  workspace::Beneath beneath(UniqueFd(::openat(root_.get(), ".", kFolder)));
  const int parent = beneath.parent_of(file.path);
  if (parent < 0) return false;
  const UniqueFd fd(::openat(parent, workspace::name_of(file.path).c_str(),
                             O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat status{};
  if (!fd || ::fstat(fd.get(), &status) != 0) return false;
  if (!S_ISREG(status.st_mode) || status.st_size != file.bytes) return false;
  workspace::Sha256 sha;
  return sum_up(fd, sha) && sha.digest() == file.sha256;
}

Result<ReceivedFile> ReceivedFiles::receive(const ExpectedFile& expected) {
  if (!workspace::is_tree_path(expected.path)) {
    return Error{.code = ErrorCode::kInvalid,
                 .what = "the server names a file " + workspace::shown(expected.path) +
                         ", which is no path within a folder"};
  }
  ReceivedFile file;
  file.expected_ = expected;
  file.root_ = root_.get();
  MUSTER_TRY(file.parent_, make_parent(root_.get(), expected.path));
  file.part_ = part_name(expected);
  file.fd_.reset(::openat(root_.get(), file.part_.c_str(),
                          O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666));
  struct stat status{};
  if (!file.fd_ || ::fstat(file.fd_.get(), &status) != 0) return in_the_way(file.part_, errno);
  if (!S_ISREG(status.st_mode)) return in_the_way(file.part_, EEXIST);
  // Without a sum nobody knows whether what is here is a part of what comes.
  if (expected.sha256.empty() || status.st_size > expected.bytes) {
    MUSTER_CHECK(file.begin_anew());
    return file;
  }
  MUSTER_TRY(file.bytes_, sum_up(file.fd_, file.sha_));
  if (::lseek(file.fd_.get(), file.bytes_, SEEK_SET) < 0) return in_the_way(file.part_, errno);
  return file;
}

Result<void> ReceivedFile::put(std::string_view bytes) {
  MUSTER_CHECK(base::write_all(fd_.get(), bytes));
  sha_.put(bytes);
  bytes_ += static_cast<int64_t>(bytes.size());
  return {};
}

Result<void> ReceivedFile::begin_anew() {
  if (::ftruncate(fd_.get(), 0) != 0 || ::lseek(fd_.get(), 0, SEEK_SET) < 0) {
    return base::system_error("cannot write " + workspace::shown(expected_.path), errno);
  }
  bytes_ = 0;
  sha_ = workspace::Sha256();
  return {};
}

Result<void> ReceivedFile::keep() {
  const std::string sum = sha_.digest();
  if (!expected_.sha256.empty() && sum != expected_.sha256) {
    MUSTER_CHECK(begin_anew());
    return Error{.code = ErrorCode::kInternal,
                 .what = workspace::shown(expected_.path) +
                         " has arrived damaged: its SHA-256 is " + sum + ", not " +
                         expected_.sha256,
                 .advice = "get it again"};
  }
  const timespec modified = as_timespec(expected_.modified);
  const timespec times[] = {modified, modified};
  // A file system that keeps no times keeps the file all the same.
  static_cast<void>(::futimens(fd_.get(), times));
  const std::string name = workspace::name_of(expected_.path);
  if (::renameat(root_, part_.c_str(), parent_.get(), name.c_str()) != 0) {
    return in_the_way(expected_.path, errno);
  }
  return {};
}

}  // namespace muster::cli::files
