"""What file tools share: path access, mutations, read tracking, paging, post-edit checks."""
