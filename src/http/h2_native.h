// Header lists in nghttp2's form; the strings stay the caller's.
#pragma once

#include <nghttp2/nghttp2.h>

#include <vector>

#include "http/message.h"

namespace firestop::http {

class NativeFields {
 public:
  explicit NativeFields(const Headers& headers) {
    fields_.reserve(headers.size());
    for (const auto& header : headers)
      fields_.push_back({bytes(header.name), bytes(header.value), header.name.size(), header.value.size(),
                         NGHTTP2_NV_FLAG_NONE});
  }
  const nghttp2_nv* data() const { return fields_.data(); }
  size_t size() const { return fields_.size(); }

 private:
  static uint8_t* bytes(const std::string& text) {
    // SAFETY: nghttp2 takes pointers that are not const and copies what they point to.
    return reinterpret_cast<uint8_t*>(const_cast<char*>(text.data()));
  }

  std::vector<nghttp2_nv> fields_;
};

}  // namespace firestop::http
