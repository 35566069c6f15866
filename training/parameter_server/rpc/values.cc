#include "parameter_server/rpc/values.h"

#include "parameter_server/chunk.h"

namespace muster::parameter_server {

bool send_values(std::span<const std::size_t> counts,
                 const std::function<grpc::Slice(std::size_t)>& piece,
                 const std::function<bool(const grpc::ByteBuffer&)>& write) {
  std::vector<grpc::Slice> slices;
  for (std::size_t i = 0; i < counts.size();) {
    std::size_t bytes = 0;
    std::size_t end = i;
    while (end < counts.size() && bytes + counts[end] * sizeof(float) <= kChunkBytes) {
      bytes += counts[end++] * sizeof(float);
    }
    const ChunkHead head(bytes);
    slices.clear();
    slices.emplace_back(head.bytes().data(), head.bytes().size());
    for (; i < end; ++i) slices.push_back(piece(i));
    if (!write(grpc::ByteBuffer(slices.data(), slices.size()))) return false;
  }
  return true;
}

bool take_chunk(grpc::ByteBuffer& chunk, Filler& into) {
  std::vector<grpc::Slice> slices;
  if (!chunk.Dump(&slices).ok()) return false;
  ChunkReader reader;
  for (const grpc::Slice& slice : slices) {
    const auto data = reader.take(std::as_bytes(std::span(slice.begin(), slice.size())));
    if (!data || !into.take(*data)) return false;
  }
  return reader.is_complete();
}

}  // namespace muster::parameter_server
