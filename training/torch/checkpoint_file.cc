#include "checkpoint_file.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "exchange.h"

namespace muster::training {

using collective::Error;
using collective::ErrorCode;
using collective::Result;
using collective::Status;

namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::string_view kMagic = "MUSTERCK";
constexpr std::uint32_t kVersion = 1;
constexpr std::size_t kDigestBytes = 32;
constexpr std::size_t kDigestAt = 8 + 4 + 4 + 8;
constexpr std::size_t kHeadBytes = kDigestAt + kDigestBytes;

using Digest = std::array<char, kDigestBytes>;

class Descriptor {
 public:
  explicit Descriptor(int descriptor) : descriptor_(descriptor) {}
  ~Descriptor() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return descriptor_; }

 private:
  int descriptor_;
};

Error cannot(const std::string& what, const std::string& path) {
  return {ErrorCode::kSystem,
          "cannot " + what + " " + path + ": " + std::generic_category().message(errno)};
}

Error refused(const std::string& path, const std::string& why) {
  return {ErrorCode::kBadArgument, path + " " + why, "move it away to start from the beginning"};
}

template <typename T>
void append(std::string& bytes, T number) {
  bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
}

template <typename T>
T number_at(const std::string& bytes, std::size_t offset) {
  T number;
  std::memcpy(&number, bytes.data() + offset, sizeof number);
  return number;
}

Digest digest_of(std::string_view head, std::string_view lines, std::string_view bytes) {
  Digest digest{};
  EVP_MD_CTX* const context = EVP_MD_CTX_new();
  EVP_DigestInit_ex(context, EVP_sha256(), nullptr);
  for (const std::string_view part : {head, lines, bytes}) {
    EVP_DigestUpdate(context, part.data(), part.size());
  }
  EVP_DigestFinal_ex(context, reinterpret_cast<unsigned char*>(digest.data()), nullptr);
  EVP_MD_CTX_free(context);
  return digest;
}

bool write_all(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

Result<std::string> read_all(int descriptor, const std::string& path) {
  struct stat status{};
  if (::fstat(descriptor, &status) != 0) return cannot("examine", path);
  if (!S_ISREG(status.st_mode)) return refused(path, "is not a regular file");
  std::string bytes(static_cast<std::size_t>(status.st_size), '\0');
  std::size_t got = 0;
  while (got < bytes.size()) {
    const ssize_t part = ::read(descriptor, bytes.data() + got, bytes.size() - got);
    if (part < 0 && errno == EINTR) continue;
    if (part < 0) return cannot("read", path);
    if (part == 0) break;
    got += static_cast<std::size_t>(part);
  }
  bytes.resize(got);
  return bytes;
}

// The folder records a rename, so it must be flushed to disk, too.
Status sync_folder(const std::string& folder) {
  const Descriptor opened(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (opened.get() < 0 || ::fsync(opened.get()) != 0) return cannot("write", folder);
  return {};
}

Result<CheckpointContent> parse(const std::string& path, const std::string& file) {
  if (!file.starts_with(kMagic)) return refused(path, "is not a Muster checkpoint");
  if (file.size() < kHeadBytes) {
    return refused(path, "is truncated after " + std::to_string(file.size()) + " bytes");
  }
  const auto version = number_at<std::uint32_t>(file, 8);
  if (version != kVersion) {
    return refused(path, "is a checkpoint of version " + std::to_string(version) +
                             ", but this program reads version " + std::to_string(kVersion));
  }
  const std::uint64_t lines = number_at<std::uint32_t>(file, 12);
  const auto bytes = number_at<std::uint64_t>(file, 16);
  const std::uint64_t rest = file.size() - kHeadBytes;
  if (lines > rest || bytes != rest - lines) {
    return refused(path, "has " + std::to_string(rest) + " bytes after its head, which announces " +
                             std::to_string(lines) + " and " + std::to_string(bytes) +
                             ": it is truncated or damaged");
  }
  const std::string_view whole(file);
  const std::string_view text = whole.substr(kHeadBytes, lines);
  const std::string_view content = whole.substr(kHeadBytes + lines);
  const Digest digest = digest_of(whole.substr(0, kDigestAt), text, content);
  if (whole.substr(kDigestAt, kDigestBytes) != std::string_view(digest.data(), digest.size())) {
    return refused(path, "is damaged: its checksum does not match");
  }
  return CheckpointContent{split_lines(text), std::string(content)};
}

}  // namespace

std::string checkpoint_path(const std::string& folder) {
  return folder + "/checkpoint";
}

Status make_folder(const std::string& folder) {
  std::error_code failed;
  if (std::filesystem::is_directory(folder, failed)) return {};
  // The parent of "runs/1/" would be "runs/1".
  const std::filesystem::path path(folder.substr(0, folder.find_last_not_of('/') + 1));
  if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path(), failed);
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return cannot("make", folder);
  return {};
}

namespace {

std::string draft_path(const std::string& folder) {
  return checkpoint_path(folder) + ".new";
}

bool matches(std::string_view name, std::string_view pattern) {
  for (const char expected : pattern) {
    std::size_t length = 1;
    if (expected == '#') {
      length = std::min(name.find_first_not_of("0123456789"), name.size());
      if (length == 0) return false;
    } else if (!name.starts_with(expected)) {
      return false;
    }
    name.remove_prefix(length);
  }
  return name.empty();
}

}  // namespace

Status write_checkpoint(const std::string& folder, const CheckpointContent& content) {
  if (Status made = make_folder(folder); !made) return made;
  const std::string lines = joined_lines(content.lines);
  std::string head(kMagic);
  append(head, kVersion);
  append(head, static_cast<std::uint32_t>(lines.size()));
  append(head, static_cast<std::uint64_t>(content.bytes.size()));
  const Digest digest = digest_of(head, lines, content.bytes);
  head.append(digest.data(), digest.size());

  const std::string path = checkpoint_path(folder);
  const std::string draft = draft_path(folder);
  {
    // The draft of a job that was killed while it wrote.
    ::unlink(draft.c_str());
    const Descriptor file(::open(draft.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (file.get() < 0) return cannot("make", draft);
    const bool whole = write_all(file.get(), head) && write_all(file.get(), lines) &&
                       write_all(file.get(), content.bytes) && ::fsync(file.get()) == 0;
    if (!whole) {
      const Error error = cannot("write", draft);
      ::unlink(draft.c_str());
      return error;
    }
  }
  if (::rename(draft.c_str(), path.c_str()) != 0) return cannot("replace", path);
  return sync_folder(folder);
}

Result<std::optional<CheckpointContent>> read_checkpoint(const std::string& folder) {
  const std::string path = checkpoint_path(folder);
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0 && errno == ENOENT) return std::optional<CheckpointContent>();
  if (file.get() < 0) return cannot("open", path);
  const Result<std::string> bytes = read_all(file.get(), path);
  if (!bytes) return bytes.error();
  Result<CheckpointContent> content = parse(path, *bytes);
  if (!content) return content.error();
  return std::optional<CheckpointContent>(*std::move(content));
}

void remove_other_checkpoints(const std::string& folder, std::string_view pattern,
                              std::string_view kept) {
  std::error_code failed;
  std::vector<std::string> old;
  std::filesystem::directory_iterator entry(folder, failed);
  for (; !failed && entry != std::filesystem::directory_iterator(); entry.increment(failed)) {
    std::error_code unknown;
    const std::string name = entry->path().filename();
    const bool is_folder = std::filesystem::is_directory(entry->symlink_status(unknown));
    if (is_folder && matches(name, pattern) && !name.starts_with(kept)) {
      old.push_back(entry->path());
    }
  }
  for (const std::string& path : old) {
    ::unlink(checkpoint_path(path).c_str());
    ::unlink(draft_path(path).c_str());
    ::rmdir(path.c_str());  // fails if there are other files
  }
}

}  // namespace muster::training
