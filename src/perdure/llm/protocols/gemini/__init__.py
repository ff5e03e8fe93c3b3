"""The Google Gemini API, also as served by Vertex AI."""
